// SPDX-License-Identifier: Apache-2.0
// timm's and OpenCLIP's checkpoints of vision transformers: their settings and tensor names as Hugging
// Face's.
#pragma once

#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "format/config.h"
#include "import/safetensors_file.h"

namespace cyb {

// Whether config.json, where there is one, leaves the settings to open_clip_config.json in the same folder.
bool is_open_clip_folder(const std::string& folder);
// open_clip_config.json as the config.json of a CLIP model. Throws UnsupportedModel for towers of other
// kinds.
nlohmann::ordered_json open_clip_config(const std::string& folder);

// config.json of timm → the keys that its tensors do not tell; false: it is none of timm.
bool adapt_timm_config(nlohmann::ordered_json* config);

// Renames and cuts the tensors of both, and completes what timm's tell of the config. `buffers` holds values
// that stand in another order than in the file.
void adapt_foreign_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::deque<std::vector<uint8_t>>* buffers);

}  // namespace cyb
