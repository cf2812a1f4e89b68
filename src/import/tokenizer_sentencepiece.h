// SPDX-License-Identifier: Apache-2.0
// SentencePiece models (tokenizer.model, spiece.model).
#pragma once

#include <string_view>

#include "text/tokenizer_spec.h"

namespace cyb {

// Ids as SentencePiece's own encoder gives them; a tokenizer_config.json (may be empty) adds roles, added
// tokens and whether BOS and EOS are added. Tokenizer error for models whose ids are not those of the file
// (XLM-R's classes).
TokenizerSpec tokenizer_from_sentencepiece(std::string_view model,
                                           std::string_view tokenizer_config_json = {});

}  // namespace cyb
