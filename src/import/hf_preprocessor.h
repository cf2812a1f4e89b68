// SPDX-License-Identifier: Apache-2.0
// The picture settings of a Hugging Face, timm or OpenCLIP folder as a `[preprocessor]` section
// (media/picture/processor.h), completed with the defaults of the reference's class.
#pragma once

#include <optional>
#include <string>

#include "format/config.h"

namespace cyb {

// From processor_config.json, preprocessor_config.json, timm's pretrained_cfg in config.json or
// open_clip_config.json, in this order; nothing where the folder has no settings for pictures. Throws
// UnsupportedModel for a kind of processor that is not known.
std::optional<Config> read_picture_preprocessor(const std::string& folder, const std::string& model_type);

}  // namespace cyb
