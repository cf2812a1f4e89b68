// SPDX-License-Identifier: Apache-2.0
// What the readers of foreign tokenizer files share.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer_spec.h"

namespace cyb {

TokenizerStep tokenizer_step(std::string type,
                             std::initializer_list<std::pair<std::string, StepValue>> values = {});

// The template "bos $A eos", for those that are asked for.
TokenizerStep bos_eos_template(const TokenizerSpec& spec, bool bos, bool eos);

// Adds `id` to the added tokens as a control token, if it is not among them yet.
void add_special(TokenizerSpec* spec, uint32_t id);

// The merges that a SentencePiece vocabulary implies: every way to cut a token into two tokens; the best
// score first, equal ones in the order of the vocabulary, then the longest left half. Control and byte tokens
// take no part. `scores` empty: by position in the vocabulary.
void derive_merges(TokenizerSpec* spec, const std::vector<double>& scores, const std::vector<bool>& excluded,
                   bool shortest_left = false);

// Throws what the runtime would throw for this description, so that a wrong one stops the import.
void check_tokenizer(const TokenizerSpec& spec);

}  // namespace cyb
