// SPDX-License-Identifier: Apache-2.0
// The steps of a tokenizer.json in the form of TokenizerStep. A step or a parameter that is not known is an
// error: skipping it would give other ids.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "text/tokenizer_spec.h"

namespace cyb {

enum class StepPlace { normalizer, pre_tokenizer, post_processor, decoder };

// `json` is null, a step, or a Sequence of steps. `spec` has its tokens already.
std::vector<TokenizerStep> read_steps(const nlohmann::json& json, StepPlace place, const TokenizerSpec& spec);

}  // namespace cyb
