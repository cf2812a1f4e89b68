// SPDX-License-Identifier: Apache-2.0
// Encoders whose config.json belongs to code on the model hub: their keys become those of the families.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cyb {

// Jina v2 and v3 say that they are "bert" and "xlm-roberta" and have positions of another kind; Nomic has
// GPT-2's keys. Throws UnsupportedModel for settings that change the arithmetic and are not known. `where`:
// the file.
void adapt_encoder_config(nlohmann::ordered_json& config, const std::string& where);

}  // namespace cyb
