// SPDX-License-Identifier: Apache-2.0
// The five encodings of weights, as docs/model-format.md defines them: where the bytes of a tensor stand,
// and the exact value of each code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace cyb {

enum class Encoding : uint8_t { u32, u16, q8, q4, ternary };

const char* to_string(Encoding encoding);
std::optional<Encoding> parse_encoding(std::string_view name);

// One line of the `tensors` section.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;  // rank 0–8; an axis may be 0
  Encoding encoding = Encoding::u32;
  uint64_t offset = 0;  // in the weights, a multiple of 4096
  uint64_t size = 0;    // bytes
  int frac_bits = 16;
  std::vector<int> order;  // logical axes in stored order; empty: as they are
  int tile = 0;            // 0 or 8
  DType type = DType::f32;
  bool bits = false;  // u32 words are IEEE f32 patterns
  int zero = 0;       // 0 or 128: value = decoded + zero
  int words = 1;      // 1 or 2 u32 words a value
};

constexpr int kBlock = 32;  // values of a q8 or q4 block
constexpr int kTileRows = 8;
constexpr int kQ8BlockBytes = 34;
constexpr int kQ4BlockBytes = 18;

int default_frac_bits(Encoding encoding);  // u32 16, others 8 (ternary 0)

}  // namespace cyb
