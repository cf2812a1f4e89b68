// SPDX-License-Identifier: Apache-2.0
// The settings of a Hugging Face folder: config.json, generation_config.json, tokenizer_config.json, the
// model card.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/config.h"

namespace cyb {

struct HfSettings {
  Config config;  // model_type, [architecture], [tokenizer], [sampling], [generation], not completed
  std::string chat;
  std::vector<std::pair<std::string, std::string>> chats;
  std::vector<std::string> warnings;
  std::vector<std::string> dense_folders;  // layers of sentence-transformers behind pooling
  std::string license;
  std::vector<std::string> languages;
  std::vector<std::pair<std::string, std::string>> origin;
  int64_t scale_block_rows = 128, scale_block_columns = 128;  // of 8-bit float weights
};

// `folder` holds config.json. Throws UnsupportedModel for weights that are packed in an unknown way.
HfSettings read_hf_settings(const std::string& folder);

// license and language(s) of a README.md's YAML header; other keys that say where the model came from.
void read_model_card(const std::string& text, HfSettings* settings);

}  // namespace cyb
