// SPDX-License-Identifier: Apache-2.0
// Tokenizers in GGUF metadata. GGUF keeps the vocabulary and a name for the rest; the steps come from a table
// of what the original models' tokenizer.json says under that name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace cyb {

class GgufMetadata;

// The keys below general.architecture and tokenizer.ggml that matter; views must outlive the call they are
// given to.
struct GgufTokenizerFields {
  std::string architecture;              // general.architecture
  std::string model;                     // tokenizer.ggml.model: gpt2, llama, gemma4, t5, bert
  std::string pre;                       // tokenizer.ggml.pre; empty if absent
  std::vector<std::string_view> tokens;  // tokenizer.ggml.tokens
  std::vector<int64_t> types;            // tokenizer.ggml.token_type; empty or one a token
  std::vector<float> scores;             // tokenizer.ggml.scores; empty or one a token
  std::vector<std::string_view> merges;  // tokenizer.ggml.merges
  std::string charsmap;                  // tokenizer.ggml.precompiled_charsmap, raw bytes
  std::optional<int64_t> bos, eos, unk, pad, sep, cls, mask;  // tokenizer.ggml.*_token_id
  std::optional<bool> add_bos, add_eos, add_sep, add_space_prefix, remove_extra_whitespaces, lowercase;
};

// Throws InvalidFile (from the getters) where a key has another type; Tokenizer if there is no vocabulary.
GgufTokenizerFields gguf_tokenizer_fields(const GgufMetadata& metadata);

// Tokenizer error for a model or a `pre` that is not known, naming it.
TokenizerSpec tokenizer_from_gguf(const GgufTokenizerFields& fields);

// The steps that a `pre` name stands for, put into `spec` (normalizer, pre-tokenizer, ignore_merges); false
// if the name is not known.
bool apply_gguf_pre(std::string_view pre, TokenizerSpec* spec);
// All known names, for messages.
std::vector<std::string_view> gguf_pre_names();

}  // namespace cyb
