// SPDX-License-Identifier: Apache-2.0
// What the sentence-transformers library adds to a model folder: how token vectors become one, prompts.
#pragma once

#include <string>
#include <vector>

#include "format/config.h"

namespace cyb {

// Where the folder has modules.json: [pooling] with `modes`, `normalize`, `max_tokens`, `prompts`,
// `default_prompt`, and of layers behind pooling `dense_widths`, `dense_activations`, `dense_biases`; their
// folders are put into `dense`. Throws UnsupportedModel for modules that are not known. False: there is no
// such file.
bool read_sentence_transformers(const std::string& folder, Config* config, std::vector<std::string>* warnings,
                                std::vector<std::string>* dense = nullptr);

}  // namespace cyb
