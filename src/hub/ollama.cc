// SPDX-License-Identifier: Apache-2.0
#include "hub/ollama.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hub/partial.h"
#include "hub/url.h"

namespace cyb {
namespace {

const std::string kLayerPrefix = "application/vnd.ollama.image.";

FetchError odd_manifest(const std::string& what, const std::string& found) {
  return FetchError(FetchFailure::corrupt, fmt::format("{}: {}", what, found),
                    "check that the registry setting (CYB_OLLAMA_REGISTRY) names an ollama registry");
}

}  // namespace

std::vector<OllamaLayer> parse_ollama_manifest(const std::string& text, const std::string& what) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array())
    throw odd_manifest(what, "the answer is no manifest");
  if (const auto version = json.find("schemaVersion");
      version == json.end() || !version->is_number_integer() || version->get<int64_t>() != 2)
    throw odd_manifest(what, "the manifest is not of version 2");
  std::vector<OllamaLayer> out;
  int models = 0;
  for (const auto& item : json["layers"]) {
    const auto text_of = [&](const char* key) {
      return item.is_object() && item.contains(key) && item[key].is_string() ? item[key].get<std::string>()
                                                                             : "";
    };
    const std::string media = text_of("mediaType"), digest = text_of("digest");
    OllamaLayer layer;
    if (digest.rfind("sha256:", 0) == 0) layer.sha256 = sha256_of_etag(digest.substr(7));
    if (layer.sha256.empty() || !item.contains("size") || !item["size"].is_number_unsigned())
      throw odd_manifest(what, "a layer has no SHA-256 or no size");
    layer.size = item["size"].get<uint64_t>();
    if (media.rfind(kLayerPrefix, 0) != 0)
      throw odd_manifest(what, fmt::format("found the layer type '{}'", media));
    layer.kind = media.substr(kLayerPrefix.size());
    layer.kind.resize(std::min(layer.kind.find_first_of(";+"), layer.kind.size()));
    if (layer.kind == "adapter" || layer.kind == "tensor" || layer.kind == "embed")
      throw error(ErrorKind::UnsupportedModel, "{}: the model has a layer of type '{}'", what, layer.kind)
          .advise("only models whose weights are one GGUF file can be used: choose another tag");
    models += layer.kind == "model";
    out.push_back(std::move(layer));
  }
  if (models != 1)
    throw odd_manifest(what, fmt::format("the manifest names {} model files, one is needed", models));
  return out;
}

OllamaPlace ollama_place(const Settings& settings, const Source& source) {
  OllamaPlace place{settings.ollama_registry, source.where};
  const auto slashes = std::count(place.path.begin(), place.path.end(), '/');
  if (slashes == 0) place.path = "library/" + place.path;
  if (slashes == 2) {
    const auto first = place.path.find('/');
    place.registry = "https://" + place.path.substr(0, first);
    place.path.erase(0, first + 1);
  }
  return place;
}

ServerAdvice ollama_advice(const Source& source) {
  ServerAdvice advice;
  advice.what = fmt::format("ollama:{}:{}", source.where, source.revision);
  advice.unauthorized = "only public models can be fetched: check the name";
  advice.forbidden = advice.unauthorized;
  advice.not_found = "check the name and the tag (ollama:name:tag)";
  return advice;
}

std::vector<OllamaLayer> list_ollama_model(HttpClient& client, const Settings& settings, const Source& source,
                                           FetchObserver& observer) {
  const OllamaPlace place = ollama_place(settings, source);
  HttpRequest request;
  request.url = fmt::format("{}/v2/{}/manifests/{}", place.registry, escape_path(place.path),
                            escape_path(source.revision));
  request.headers.push_back("Accept: application/vnd.docker.distribution.manifest.v2+json");
  const ServerAdvice advice = ollama_advice(source);
  return parse_ollama_manifest(get_page(client, request, advice, observer, 4u << 20).body, advice.what);
}

std::string ollama_blob_url(const OllamaPlace& place, const OllamaLayer& layer) {
  return fmt::format("{}/v2/{}/blobs/sha256:{}", place.registry, escape_path(place.path), layer.sha256);
}

std::string ollama_file_name(const OllamaLayer& layer) {
  if (layer.kind == "model") return "model.gguf";
  if (layer.kind == "projector") return "projector.gguf";
  if (layer.kind == "params") return "params.json";
  if (layer.kind == "template" || layer.kind == "system" || layer.kind == "license")
    return layer.kind + ".txt";
  return "";
}

}  // namespace cyb
