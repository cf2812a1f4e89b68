// SPDX-License-Identifier: Apache-2.0
// SentencePiece models whose pieces a vocab.json numbers: Marian's and M2M-100's folders.
#pragma once

#include <string_view>

#include "text/tokenizer_spec.h"

namespace cyb {

// The pieces of `model` under the numbers of vocab.json, which also holds tokens that only results have.
// Pieces without a number are given as the unknown token. `config` is tokenizer_config.json's text; its class
// says which languages stand behind the vocabulary.
TokenizerSpec tokenizer_from_vocabulary(std::string_view model, std::string_view vocab_json,
                                        std::string_view config);

}  // namespace cyb
