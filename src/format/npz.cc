// SPDX-License-Identifier: Apache-2.0
#include "format/npz.h"

#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/system_memory.h"
#include "base/zip_library.h"
#include "format/npy.h"

namespace cyb {
namespace {

constexpr zip_int64_t kMostArrays = 65536;
const std::string kSuffix = ".npy";

struct Discard {
  void operator()(zip_t* zip) const { zip_library().discard(zip); }
};
using Zip = std::unique_ptr<zip_t, Discard>;

Error damaged(const std::string& path, const std::string& found) {
  return error(ErrorKind::InvalidFile, "{}: {}", path, found).advise("write it with numpy.savez");
}

std::string words_of(int code) {
  zip_error_t reason;
  zip_library().error_init_with_code(&reason, code);
  std::string words = zip_library().error_strerror(&reason);
  zip_library().error_fini(&reason);
  return words;
}

// A member's bytes. They are taken as they come, so that a size that is only stated costs nothing.
std::string content(zip_t* zip, zip_uint64_t index, uint64_t size, const std::string& where) {
  zip_file_t* in = zip_library().fopen_index(zip, index, 0);
  if (!in) throw damaged(where, zip_library().strerror(zip));
  const std::unique_ptr<zip_file_t, int (*)(zip_file_t*)> closer(in, zip_library().fclose);
  std::string out;
  std::string piece(1 << 20, '\0');
  for (;;) {
    const zip_int64_t n = zip_library().fread(in, piece.data(), piece.size());  // checks the CRC at the end
    if (n < 0) throw damaged(where, zip_library().file_strerror(in));
    if (n == 0) break;
    out.append(piece, 0, static_cast<size_t>(n));
    if (out.size() > size) throw damaged(where, "longer than stated");
  }
  return out;
}

}  // namespace

std::map<std::string, Tensor> read_npz(const std::string& path) {
  { const MappedFile readable(path); }  // for the system's reason where it is not
  int code = 0;
  const Zip zip(zip_library().open(path.c_str(), ZIP_RDONLY, &code));
  if (!zip) throw damaged(path, "no readable .npz archive: " + words_of(code));
  const zip_int64_t count = zip_library().get_num_entries(zip.get(), 0);
  if (count > kMostArrays) throw damaged(path, fmt::format("{} arrays", count));
  std::map<std::string, Tensor> out;
  uint64_t total = 0;
  const uint64_t memory = usable_memory() ? usable_memory() / 2 : UINT64_MAX / 2;
  for (zip_uint64_t i = 0; i < static_cast<zip_uint64_t>(count); i++) {
    zip_stat_t stat;
    if (zip_library().stat_index(zip.get(), i, 0, &stat) != 0 || !(stat.valid & ZIP_STAT_NAME) ||
        !(stat.valid & ZIP_STAT_SIZE))
      throw damaged(path, "its table of contents cannot be read");
    std::string name = stat.name;
    const std::string where = path + ", " + name;
    if (stat.size > memory || (total += stat.size) > memory)
      throw error(ErrorKind::OutOfMemory, "{}: the arrays take more than {} MB", path, memory >> 20)
          .advise("give them one by one, as .npy files");
    if (!name.ends_with(kSuffix)) throw damaged(where, "no .npy file");
    name.resize(name.size() - kSuffix.size());
    if (!out.emplace(name, parse_npy(content(zip.get(), i, stat.size, where), where)).second)
      throw damaged(where, "there are two of that name");
  }
  return out;
}

void write_npz(const std::string& path, std::span<const std::pair<std::string, const Tensor*>> arrays) {
  // Beside the target, so that what libzip cannot finish leaves nothing.
  AtomicFile target(path);
  std::vector<std::string> bytes;  // libzip reads them when it closes
  zip_error_t reason;
  zip_library().error_init(&reason);
  zip_source_t* memory = zip_library().source_buffer_create(nullptr, 0, 0, &reason);
  zip_library().source_keep(memory);
  Zip zip(zip_library().open_from_source(memory, ZIP_TRUNCATE, &reason));
  if (!zip) {
    zip_library().source_free(memory);
    zip_library().source_free(memory);
    throw error(ErrorKind::Io, "{}: {}", path, zip_library().error_strerror(&reason));
  }
  const std::unique_ptr<zip_source_t, void (*)(zip_source_t*)> keeper(memory, zip_library().source_free);
  const auto failed = [&] { return error(ErrorKind::Io, "{}: {}", path, zip_library().strerror(zip.get())); };
  for (const auto& [name, tensor] : arrays) bytes.push_back(npy_bytes(*tensor, path + ", " + name));
  for (size_t i = 0; i < arrays.size(); i++) {
    zip_source_t* source = zip_library().source_buffer(zip.get(), bytes[i].data(), bytes[i].size(), 0);
    if (!source) throw failed();
    const zip_int64_t index =
        zip_library().file_add(zip.get(), (arrays[i].first + kSuffix).c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_library().source_free(source);
      throw failed();
    }
    if (zip_library().set_file_compression(zip.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0)
      throw failed();
  }
  if (zip_library().close(zip.get()) != 0) throw failed();
  (void)zip.release();
  if (zip_library().source_open(memory) != 0)
    throw error(ErrorKind::Io, "{}: cannot read the archive back", path);
  std::string piece(1 << 20, '\0');
  for (zip_int64_t n; (n = zip_library().source_read(memory, piece.data(), piece.size())) > 0;)
    target.write(piece.data(), static_cast<size_t>(n));
  zip_library().source_close(memory);
  target.commit();
}

}  // namespace cyb
