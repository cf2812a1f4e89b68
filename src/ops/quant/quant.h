// SPDX-License-Identifier: Apache-2.0
// What the kernels of quantization share: where an element's scale stands, and ranges of codes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend/cpu/kernel.h"
#include "ir/ops/recurrent.h"

namespace cyb::cpu {

// The operand as [outer, axis, inner]; scales stand for the whole, an index of the axis, or a block of it.
struct ScaleLayout {
  int64_t outer = 1, axis = 1, inner = 1;
  int64_t block = 0, blocks = 0;
  enum Kind : uint8_t { whole, axes, block_of } kind = whole;

  int64_t index(int64_t o, int64_t a, int64_t i) const {
    return kind == whole ? 0 : kind == axes ? a : (o * blocks + a / block) * inner + i;
  }
};
ScaleLayout scale_layout(const Call& call, const Arg& scales);

struct CodeRange {
  int32_t low, high;
};
CodeRange code_range(DType codes, int64_t bits);

// scale and zero point that let [min(x, 0), max(x, 0)] fill 0…255.
struct DynamicRange {
  float scale;
  uint8_t zero;
};
inline DynamicRange dynamic_range(float least, float most) {
  least = least < 0 ? least : 0.0f;
  most = most > 0 ? most : 0.0f;
  const float scale = most == least ? 1.0f : (most - least) / 255.0f;
  const float zero = 0.0f - least / scale;
  const float bounded = zero > 0 ? (zero < 255 ? zero : 255.0f) : 0.0f;  // NaN: 0
  return {scale, static_cast<uint8_t>(std::nearbyintf(bounded))};
}
inline uint8_t quantize_u8(float x, float scale, int32_t zero) {
  const float v = x / scale, low = static_cast<float>(-zero), high = static_cast<float>(255 - zero);
  const float bounded = v > low ? (v < high ? v : high) : low;  // NaN: the lowest code
  return static_cast<uint8_t>(static_cast<int32_t>(std::nearbyintf(bounded)) + zero);
}

}  // namespace cyb::cpu
