// SPDX-License-Identifier: Apache-2.0
// Tensors of encoder-decoder checkpoints under the names that families/t5_style.cc reads, whatever class
// saved them.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "format/config.h"
#include "import/safetensors_file.h"

namespace cyb {

// The head of a class: "none" (the encoder alone), "language" or "sequence"; nothing for other model types.
// Throws UnsupportedModel for a class that reads something else.
std::optional<std::string> seq2seq_head(const std::string& model_type, const std::string& architecture);

// Gives tensors their names, drops what the class does not read (`ignored` says why), and writes into the
// config what only the tensors tell: whether the head is tied, and whether there is a bias of logits. Does
// nothing for other model types.
void adapt_seq2seq_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::vector<std::pair<std::string, std::string>>* ignored);

}  // namespace cyb
