// SPDX-License-Identifier: Apache-2.0
// From GGUF metadata to the Hugging Face config, and from GGUF tensor names to the checkpoint's. What differs
// between architectures is in one table.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/config.h"
#include "import/gguf_file.h"
#include "import/source_tensor.h"

namespace cyb {

struct GgufArchitecture {
  const char* name;        // general.architecture
  const char* model_type;  // of the Hugging Face config
  bool permuted = false;   // q and k rows are interleaved for rotary pairs
  bool norms_plus_one = false;
  bool sandwich = false;       // norms behind attention and feed-forward too
  int64_t window_pattern = 0;  // every n-th layer is full, where the metadata does not say
  bool softcaps = false;       // attention and output caps may be in the metadata
  // Models of so many layers scale attention by hidden_size / heads instead of head_dim; no metadata says it.
  // 0: the scale is always that of head_dim and has no key.
  int64_t odd_scale_layers = 0;
  bool encoder = false;  // gguf_encoder.h
};

// Throws UnsupportedModel, which lists what is supported.
const GgufArchitecture& gguf_architecture(const std::string& name);
std::string gguf_architectures();

// model_type, [architecture], [tokenizer], [generation]; throws InvalidConfig for what would change the
// arithmetic and is not known. `warnings` gets the architecture's keys that nothing reads.
Config gguf_config(const GgufFile& file, std::vector<std::string>* warnings);

struct GgufName {
  std::string name;  // in the checkpoint; empty: not a weight (its content went into the config)
  GgufTransform transform;
  int part = 0;  // 1, 2: these rows of the checkpoint's tensor, where the file holds both halves apart
};
// std::nullopt for a name that the architecture does not have.
std::optional<GgufName> gguf_tensor_name(const GgufArchitecture& arch, const std::string& name,
                                         const Config& config);

}  // namespace cyb
