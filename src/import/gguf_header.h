// SPDX-License-Identifier: Apache-2.0
// The parser of one GGUF file's header (a shard, or the whole).
#pragma once

#include <span>
#include <vector>

#include "import/gguf_file.h"

namespace cyb {

struct GgufHeader {
  int version = 0;
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  // data, size and offset set; file not
};

GgufHeader parse_gguf_header(std::span<const uint8_t> bytes);

}  // namespace cyb
