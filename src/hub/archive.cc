// SPDX-License-Identifier: Apache-2.0
#include "hub/archive.h"

#include <algorithm>

#include "base/error.h"
#include "base/zip_library.h"
#include "hub/url.h"

namespace cyb {
namespace {

constexpr zip_int64_t kMostEntries = 100000;

Error damaged(const std::string& path, const std::string& found) {
  return error(ErrorKind::InvalidFile, "'{}': {}", path, found).advise("fetch it again");
}

}  // namespace

struct Archive::Impl {
  zip_t* zip = nullptr;
  ~Impl() {
    if (zip) zip_library().discard(zip);
  }
};

Archive::Archive(const std::string& path) : path_(path), impl_(std::make_unique<Impl>()) {
  int code = 0;
  impl_->zip = zip_library().open(path.c_str(), ZIP_RDONLY, &code);
  if (!impl_->zip) {
    zip_error_t reason;
    zip_library().error_init_with_code(&reason, code);
    const std::string words = zip_library().error_strerror(&reason);
    zip_library().error_fini(&reason);
    throw damaged(path, "no readable archive: " + words);
  }
  const zip_int64_t count = zip_library().get_num_entries(impl_->zip, 0);
  if (count > kMostEntries) throw damaged(path, "more than 100000 files");
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    if (zip_library().stat_index(impl_->zip, static_cast<zip_uint64_t>(i), 0, &stat) != 0 ||
        !(stat.valid & ZIP_STAT_NAME) || !(stat.valid & ZIP_STAT_SIZE))
      throw damaged(path, "its table of contents cannot be read");
    const std::string name = stat.name;
    if (name.ends_with("/") || !safe_relative_path(name)) continue;
    files_.push_back({name, stat.size});
  }
}

Archive::~Archive() = default;

const ArchiveFile* Archive::find(const std::string& path) const {
  for (const ArchiveFile& file : files_)
    if (file.path == path) return &file;
  return nullptr;
}

void Archive::read(const ArchiveFile& file, const std::function<void(const char*, size_t)>& take) const {
  zip_file_t* in = zip_library().fopen(impl_->zip, file.path.c_str(), 0);
  if (!in)
    throw damaged(path_, fmt::format("cannot read '{}': {}", file.path, zip_library().strerror(impl_->zip)));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closer(in, zip_library().fclose);
  std::vector<char> buffer(1 << 20);
  uint64_t done = 0;
  for (;;) {
    const zip_int64_t n = zip_library().fread(in, buffer.data(), buffer.size());  // checks the CRC at the end
    if (n < 0)
      throw damaged(path_, fmt::format("cannot read '{}': {}", file.path, zip_library().file_strerror(in)));
    if (n == 0) break;
    done += static_cast<uint64_t>(n);
    if (done > file.size) throw damaged(path_, fmt::format("'{}' is longer than stated", file.path));
    take(buffer.data(), static_cast<size_t>(n));
  }
  if (done != file.size) throw damaged(path_, fmt::format("'{}' is shorter than stated", file.path));
}

std::vector<ArchiveFile> model_files(const std::vector<ArchiveFile>& files) {
  static const char* const kNotModels[] = {".py",    ".pyi", ".pyc", ".so",       ".pyd",   ".dll",
                                           ".dylib", ".md",  ".rst", ".h",        ".typed", ".html",
                                           ".js",    ".css", ".png", ".gitignore"};
  std::vector<ArchiveFile> out;
  for (const ArchiveFile& file : files) {
    const std::string top = file.path.substr(0, file.path.find('/'));
    if (top.ends_with(".dist-info")) continue;
    const bool other = std::any_of(std::begin(kNotModels), std::end(kNotModels),
                                   [&](const char* suffix) { return file.path.ends_with(suffix); });
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    if (other || name.empty() || name[0] == '.' || name.rfind("LICENSE", 0) == 0 || file.size == 0) continue;
    out.push_back(file);
  }
  return out;
}

}  // namespace cyb
