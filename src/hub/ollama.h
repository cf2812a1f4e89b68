// SPDX-License-Identifier: Apache-2.0
// The ollama registry: a manifest names blobs by digest; one of them is the GGUF file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hub/answer.h"
#include "hub/settings.h"
#include "hub/source.h"

namespace cyb {

struct OllamaLayer {
  std::string kind;    // "model", "projector", "template", "params", "license", "system", …
  std::string sha256;  // of the blob
  uint64_t size = 0;
};

// Throws FetchError for what is no manifest, UnsupportedModel for layers that change the model (adapters).
std::vector<OllamaLayer> parse_ollama_manifest(const std::string& json, const std::string& what);

struct OllamaPlace {
  std::string registry;  // https://host
  std::string path;      // namespace/model
};
OllamaPlace ollama_place(const Settings& settings, const Source& source);

std::vector<OllamaLayer> list_ollama_model(HttpClient& client, const Settings& settings, const Source& source,
                                           FetchObserver& observer);
std::string ollama_blob_url(const OllamaPlace& place, const OllamaLayer& layer);
ServerAdvice ollama_advice(const Source& source);

// The name of the file that a layer becomes: model.gguf, template.txt, params.json …; empty: not needed.
std::string ollama_file_name(const OllamaLayer& layer);

}  // namespace cyb
