// SPDX-License-Identifier: Apache-2.0
// whisper.cpp's model files: settings, mel filters, a vocabulary of plain bytes, tensors, in one stream
// without alignment.
#pragma once

#include <memory>
#include <string>

#include "import/source_model.h"

namespace cyb {

// Whether the file begins with the settings of a Whisper; older language models have the same first bytes.
bool is_ggml_whisper(std::span<const uint8_t> bytes);
std::unique_ptr<SourceModel> open_ggml_whisper(const std::string& path);

}  // namespace cyb
