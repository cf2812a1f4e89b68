// SPDX-License-Identifier: Apache-2.0
// Text encoders in GGUF files: their metadata as a config, their tensors under the checkpoint's names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "import/gguf_config.h"

namespace cyb {

// model_type and [architecture], [pooling]. Throws UnsupportedModel for what changes the arithmetic and is
// not known. `warnings` gets the architecture's keys that nothing reads.
Config gguf_encoder_config(const GgufFile& file, const GgufArchitecture& arch,
                           std::vector<std::string>* warnings);
// std::nullopt for a name that the architecture does not have.
std::optional<GgufName> gguf_encoder_tensor_name(const std::string& name, const Config& config);

}  // namespace cyb
