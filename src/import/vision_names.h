// SPDX-License-Identifier: Apache-2.0
// Checkpoints of towers of pictures: with or without the prefix of the base model, what nobody reads, heads.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "format/config.h"
#include "import/safetensors_file.h"
#include "text/tokenizer_spec.h"

namespace cyb {

// Whether a folder of this model type has a vocabulary: all but towers of pictures have.
bool reads_texts(const Config& config);

// SigLIP's towers are trained on lower case, which not every tokenizer.json of them says.
void read_lower_case(const Config& config, TokenizerSpec* tokenizer);

// Sets architecture.head or architecture.projection as the class says that the folder names. Throws
// UnsupportedModel for heads that are not supported. Other model types: nothing happens.
void read_vision_head(Config* config, const std::string& architecture);

// Renames the tensors of these model types, and removes those that the reference does not read for the
// config's head; `ignored` gets their names and why. Tells the config what only the tensors tell.
void adapt_vision_tensors(std::vector<SafeTensor>* tensors, Config* config,
                          std::vector<std::pair<std::string, std::string>>* ignored);

}  // namespace cyb
