// SPDX-License-Identifier: Apache-2.0
// Fetching from the Hub, the ollama registry and plain addresses.
#include <filesystem>

#include "base/sha256.h"
#include "hub/download.h"
#include "hub/fetch_error.h"
#include "hub/fetch_sources.h"
#include "hub/huggingface.h"
#include "hub/ollama.h"

namespace cyb {
namespace {

std::string flat(std::string text) {
  for (char& c : text)
    if (c == '/' || c == ':') c = '-';
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Fetched fetch_huggingface(const FetchContext& context, const CatalogSource& wanted) {
  const Source& source = wanted.source;
  const Settings& settings = context.settings;
  const HubRepo repo = list_hub_repo(context.client, settings, source, context.observer);
  std::vector<HubFile> files = choose_hub_files(repo.files, source.file, source.where);
  if (!wanted.sha256.empty()) {  // of the one file that the catalog names
    HubFile& last = files.back();
    if (!last.sha256.empty() && last.sha256 != wanted.sha256)
      throw FetchError(FetchFailure::corrupt,
                       fmt::format("hf:{}: {} has SHA-256 {}, the catalog says {}", source.where, last.path,
                                   last.sha256, wanted.sha256),
                       "the repository has changed: name a revision, or another source");
    last.sha256 = wanted.sha256;
  }
  Fetched fetched;
  fetched.cached = context.options.directory.empty();
  const std::string folder = context.folder("hf/" + flat(source.where) + "/" + repo.commit.substr(0, 12));
  for (const HubFile& file : files) {
    Download what;
    what.request.url = hub_file_url(settings, source, repo, file.path);
    what.request.bearer = settings.hf_token;
    what.advice = hub_advice(settings, source);
    what.target = folder + "/" + file.path;
    what.label = file.path;
    what.size = file.size;
    what.sha256 = file.sha256;
    what.git_sha1 = file.git_sha1;
    what.hub_headers = true;
    what.pages_allowed = file.path.ends_with(".html");
    if (!already_there(context, what.target, file.size, file.sha256))
      download(context.client, what, context.observer);
    fetched.files.push_back(what.target);
  }
  // One model file stands for itself; a configuration and its weights are a folder.
  std::string main;
  for (const HubFile& file : files)
    if (main.empty() && (file.path.ends_with(".gguf") || file.path.ends_with(".onnx"))) main = file.path;
  if (files.size() == 1) main = files.front().path;
  const bool below = main.empty() && source.file.find('/') != std::string::npos;  // hf:org/repo:folder/file
  fetched.path = !main.empty() ? folder + "/" + main
                 : below ? std::filesystem::path(folder + "/" + files.back().path).parent_path().string()
                         : folder;
  fetched.name = store_name(main.empty() ? file_name(source.where) : model_stem(main));
  fetched.source =
      fmt::format("hf:{}@{}{}{}", source.where, repo.commit, source.file.empty() ? "" : ":", source.file);
  fetched.license = repo.license;
  return fetched;
}

Fetched fetch_ollama(const FetchContext& context, const CatalogSource& wanted) {
  const Source& source = wanted.source;
  const OllamaPlace place = ollama_place(context.settings, source);
  const std::vector<OllamaLayer> layers =
      list_ollama_model(context.client, context.settings, source, context.observer);
  Fetched fetched;
  fetched.cached = context.options.directory.empty();
  std::string digest;
  for (const OllamaLayer& layer : layers)
    if (layer.kind == "model") digest = layer.sha256;
  if (!wanted.sha256.empty() && digest != wanted.sha256)
    throw FetchError(
        FetchFailure::corrupt,
        fmt::format("ollama:{} has the model {}, the catalog says {}", source.where, digest, wanted.sha256),
        "the tag has moved: name another source");
  const std::string folder = context.folder("ollama/" + flat(source.where) + "/" + digest.substr(0, 12));
  int licenses = 0;
  for (const OllamaLayer& layer : layers) {
    std::string name = ollama_file_name(layer);
    if (name.empty()) continue;
    if (layer.kind == "license" && ++licenses > 1) name = fmt::format("license-{}.txt", licenses);
    Download what;
    what.request.url = ollama_blob_url(place, layer);
    what.advice = ollama_advice(source);
    what.target = folder + "/" + name;
    what.label = layer.kind == "model" ? source.where + ":" + source.revision : name;
    what.size = layer.size;
    what.sha256 = layer.sha256;
    what.pages_allowed = true;  // the digest decides
    if (!already_there(context, what.target, layer.size, layer.sha256))
      download(context.client, what, context.observer);
    fetched.files.push_back(what.target);
    if (layer.kind == "model") fetched.path = what.target;
  }
  fetched.name =
      store_name(file_name(source.where) + (source.revision == "latest" ? "" : "-" + source.revision));
  fetched.source = fmt::format("ollama:{}:{}@sha256:{}", source.where, source.revision, digest);
  return fetched;
}

Fetched fetch_url(const FetchContext& context, const CatalogSource& wanted) {
  const Source& source = wanted.source;
  const std::string& url = source.where;
  const std::string query = url.find('?') == std::string::npos ? "" : url.substr(url.find('?'));
  const std::string path = url_path(url);
  const std::string name = wanted.file_name.empty() ? file_name(path) : wanted.file_name;
  if (!safe_relative_path(name))
    throw error(ErrorKind::Usage, "the address '{}' names no file", printable_url(url))
        .advise("give the address of the file itself, for instance https://host/folder/model.gguf");
  std::string digest = wanted.sha256.empty() ? source.sha256 : wanted.sha256;
  const std::string folder = context.folder("url/" + sha256_hex(url).substr(0, 12));
  Fetched fetched;
  fetched.cached = context.options.directory.empty();
  const std::vector<std::string> names = shard_names(name);
  if (names.size() > 1 && !digest.empty())
    throw error(ErrorKind::Usage, "'{}' is one of {} parts, a single SHA-256 cannot stand for them", name,
                names.size())
        .advise("leave #sha256= out");
  const auto fetch = [&](const std::string& part, const std::string& address, const std::string& sha256) {
    Download what;
    what.request.url = address;
    what.advice.what = printable_url(what.request.url);
    what.advice.unauthorized =
        "the server asks for a password: put it into the address (https://user:password@host/…)";
    what.advice.forbidden = "the server does not give the file away: check the address";
    what.advice.not_found = "check the address";
    what.target = folder + "/" + part;
    what.label = part;
    what.sha256 = sha256;
    if (!already_there(context, what.target, std::nullopt, sha256))
      download(context.client, what, context.observer);
    fetched.files.push_back(what.target);
  };
  const auto beside = [&](const std::string& part) { return resolve_url(url, escape_path(part) + query); };
  for (const std::string& part : names)
    fetch(part, part == name || names.size() == 1 ? url : beside(part), digest);
  fetched.path = fetched.files.front();
  if (context.options.companions && names.size() == 1)
    for (const std::string& part : context.options.companions(fetched.path))
      // Anything else is refused by who reads the model.
      if (safe_relative_path(part) && part != name) fetch(part, beside(part), "");
  fetched.name = store_name(model_stem(name));
  fetched.source = printable_url(url);
  return fetched;
}

}  // namespace cyb
