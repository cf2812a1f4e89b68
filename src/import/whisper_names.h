// SPDX-License-Identifier: Apache-2.0
// What Whisper's own checkpoints and whisper.cpp's files have in common: names of tensors and tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/tokenizer_spec.h"

namespace cyb {

// "decoder.blocks.0.attn.query.weight" → "model.decoder.layers.0.self_attn.q_proj.weight", as Hugging Face
// names it; none for names that the model does not have.
std::optional<std::string> whisper_tensor_name(std::string_view name);

// The tokenizer of a vocabulary of plain bytes, best merges first, completed by the tokens of languages,
// tasks and times up to `size`. Throws Tokenizer for sizes that no Whisper has.
TokenizerSpec whisper_tokenizer(const std::vector<std::string>& words, int64_t size);

}  // namespace cyb
