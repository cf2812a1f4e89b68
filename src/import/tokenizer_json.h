// SPDX-License-Identifier: Apache-2.0
// Tokenizers of Hugging Face folders.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_spec.h"

namespace cyb {

// From tokenizer.json; tokenizer_config.json (may be empty) adds the roles of tokens, further added tokens
// and whether BOS and EOS are added. Errors are Tokenizer and name the key.
TokenizerSpec tokenizer_from_json(std::string_view tokenizer_json,
                                  std::string_view tokenizer_config_json = {});

// Roles, added tokens and add_bos/add_eos of a tokenizer_config.json, applied to a description read
// elsewhere.
void apply_tokenizer_config(std::string_view tokenizer_config_json, TokenizerSpec* spec);

// From the folder of a model: tokenizer.json, else tokenizer.model, else vocab.json with merges.txt, else
// vocab.txt. Tokenizer error if none is there.
TokenizerSpec tokenizer_from_folder(const std::string& folder);
// Of models whose results have a vocabulary of their own (`separate_vocabs`), that one.
std::optional<TokenizerSpec> target_tokenizer_from_folder(const std::string& folder);

}  // namespace cyb
