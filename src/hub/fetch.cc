// SPDX-License-Identifier: Apache-2.0
#include "hub/fetch.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/sha256.h"
#include "hub/download.h"
#include "hub/fetch_error.h"
#include "hub/fetch_sources.h"
#include "hub/store.h"

namespace cyb {
namespace {

Fetched fetch_source(const FetchContext& context, const CatalogSource& source) {
  switch (source.source.kind) {
    case SourceKind::huggingface:
      return fetch_huggingface(context, source);
    case SourceKind::ollama:
      return fetch_ollama(context, source);
    case SourceKind::pypi:
      return fetch_pypi(context, source);
    case SourceKind::url:
      return fetch_url(context, source);
    case SourceKind::path:
      return fetch_path(source);
    case SourceKind::name:
      break;
  }
  throw error(ErrorKind::Usage, "found '{}' where a source is needed", source.source.text);
}

// Sources that are of no use once a host did not answer share this key.
std::string host_key(const Source& source, const Settings& settings) {
  switch (source.kind) {
    case SourceKind::huggingface:
      return url_origin(settings.hf_endpoint);
    case SourceKind::ollama:
      return url_origin(settings.ollama_registry);
    case SourceKind::pypi:
      return url_origin(settings.pip.index_url);
    case SourceKind::url:
      return url_origin(source.where);
    default:
      return "";
  }
}

std::string short_text(const Source& source) {
  return source.text.size() > 80 ? source.text.substr(0, 77) + "…" : source.text;
}

Fetched fetch_entry(const FetchContext& context, const CatalogEntry& entry) {
  std::set<std::string> silent_hosts;
  std::string reasons, advice;
  ErrorKind kind = ErrorKind::Io;
  for (size_t i = 0; i < entry.sources.size(); ++i) {
    const CatalogSource& source = entry.sources[i];
    const std::string host = host_key(source.source, context.settings);
    if (!host.empty() && silent_hosts.count(host)) continue;
    try {
      Fetched fetched = fetch_source(context, source);
      fetched.name = entry.name;
      if (fetched.license.empty()) fetched.license = entry.license;
      return fetched;
    } catch (const Error& e) {
      const auto* fault = dynamic_cast<const FetchError*>(&e);
      // What is wrong on this machine (a full disk) is wrong for every source.
      const bool elsewhere =
          fault || e.kind() == ErrorKind::InvalidFile || e.kind() == ErrorKind::UnsupportedModel;
      if (!elsewhere || entry.sources.size() == 1) throw;
      if (fault && fault->failure() == FetchFailure::unreachable) silent_hosts.insert(host);
      const bool more = std::any_of(
          entry.sources.begin() + static_cast<std::ptrdiff_t>(i) + 1, entry.sources.end(),
          [&](const CatalogSource& s) { return !silent_hosts.count(host_key(s.source, context.settings)); });
      context.observer.note(fmt::format("{}: {}{}", short_text(source.source), e.message(),
                                        more ? "; trying the next source" : ""));
      reasons += (reasons.empty() ? "" : "; ") + short_text(source.source) + ": " + e.message();
      advice = e.advice();
      kind = e.kind();
    }
  }
  throw Error(kind, fmt::format("no source of '{}' could be used: {}", entry.name, reasons), advice);
}

}  // namespace

Fetched fetch_model(const std::string& what, const Settings& settings, const Catalog& catalog,
                    const FetchOptions& options, FetchObserver& observer) {
  CatalogSource source;
  source.source = parse_source(what);
  HttpClient client(settings.network);
  const FetchContext context{settings, options, observer, client};
  if (source.source.kind != SourceKind::name) return fetch_source(context, source);
  if (const CatalogEntry* entry = catalog.find(source.source.where)) return fetch_entry(context, *entry);
  std::vector<std::string> names;
  for (const CatalogEntry& entry : catalog.entries) names.push_back(entry.name);
  const auto near = near_names(what, names);
  std::string list;
  for (const std::string& name : near.empty() ? names : near) list += (list.empty() ? "" : ", ") + name;
  throw error(ErrorKind::Usage, "the catalog has no model '{}'", what)
      .advise("{} {}; or name a source: hf:org/repo, ollama:name, pypi:package, an address, ./path",
              near.empty() ? "it has" : "did you mean", list);
}

bool already_there(const FetchContext& context, const std::string& path, std::optional<uint64_t> size,
                   const std::string& sha256) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return false;
  const bool cached = context.options.directory.empty();
  const uint64_t found = std::filesystem::file_size(path, code);
  bool same = !code && (!size || found == *size);
  // Files in the cache got their name only after they were verified.
  if (same && !cached) same = !sha256.empty() && sha256_file(path) == sha256;
  if (same) return true;
  if (cached) return false;
  throw error(ErrorKind::Io, "'{}' is already there and not proven to be the same file", path)
      .advise("remove it, or choose another folder with --out");
}

std::string model_stem(const std::string& path) {
  std::string name = path.substr(path.rfind('/') + 1);
  for (const char* suffix :
       {".gguf", ".safetensors", ".onnx", ".model", ".pth", ".pt", ".bin", ".ckpt", ".json"}) {
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - std::string(suffix).size());
    break;
  }
  const auto shard = name.rfind("-of-");
  if (shard != std::string::npos && shard >= 6 && name.size() == shard + 9) name.resize(shard - 6);
  return name;
}

Fetched fetch_path(const CatalogSource& source) {
  const std::string& path = source.source.where;
  std::error_code code;
  if (!std::filesystem::exists(path, code))
    throw error(ErrorKind::Io, "there is no file or folder '{}'", path).advise("check the path");
  if (std::filesystem::is_regular_file(path, code)) {
    if (is_lfs_pointer_file(path))
      throw error(ErrorKind::InvalidFile, "'{}' is a Git LFS pointer, not the file itself", path)
          .advise("run 'git lfs pull' in its folder, or fetch the repository with hf:org/repo");
    if (!source.sha256.empty() && sha256_file(path) != source.sha256)
      throw FetchError(FetchFailure::corrupt,
                       fmt::format("'{}' has another SHA-256 than {}", path, source.sha256),
                       "check the file");
  }
  Fetched fetched;
  fetched.path = path;
  const std::string whole = std::filesystem::absolute(path, code).lexically_normal().string();
  fetched.name = store_name(model_stem(whole.ends_with('/') ? whole.substr(0, whole.size() - 1) : whole));
  fetched.source = path;
  return fetched;
}

void discard_cached(const Fetched& fetched, const Settings& settings) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fetched.cached) return;
  const fs::path cache = fs::path(settings.cache_dir()).lexically_normal();
  for (const std::string& file : fetched.files) {
    fs::remove(file, ignored);
    for (fs::path folder = fs::path(file).parent_path().lexically_normal(); folder != cache;
         folder = folder.parent_path()) {
      const bool below = folder.string().rfind(cache.string() + "/", 0) == 0;
      if (!below || !fs::is_empty(folder, ignored) || !fs::remove(folder, ignored)) break;
    }
  }
}

}  // namespace cyb
