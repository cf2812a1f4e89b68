// SPDX-License-Identifier: Apache-2.0
// Tensor names of encoder checkpoints: with or without the prefix of the base model, old names of norms, tied
// decoders stored twice, heads that nobody reads.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/config.h"
#include "import/safetensors_file.h"

namespace cyb {

// Renames the tensors of a model type that is an encoder, and removes those that the reference does not read
// for the config's head; `ignored` gets their names and why. `config` says where a decoder is not tied after
// all. Other model types: nothing happens.
void adapt_encoder_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::vector<std::pair<std::string, std::string>>* ignored);

// "BertForMaskedLM" → "masked_lm"; empty for what is no head. Throws UnsupportedModel for heads that are not
// supported.
std::optional<std::string> encoder_head(const std::string& model_type, const std::string& architecture);

}  // namespace cyb
