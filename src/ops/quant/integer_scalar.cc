// SPDX-License-Identifier: Apache-2.0
// The tile of integer products in plain C++.
#include <cstring>

#include "ops/quant/integer.h"

namespace cyb {
namespace {

void tile(const uint8_t* a, int64_t stride, int rows, const int8_t* panel, int64_t groups, int32_t* sums) {
  std::memset(sums, 0, sizeof(int32_t) * kIntColumns * static_cast<size_t>(rows));
  for (int i = 0; i < rows; i++) {
    auto* s = reinterpret_cast<uint32_t*>(sums) + i * kIntColumns;
    for (int64_t g = 0; g < groups; g++) {
      const uint8_t* x = a + i * stride + 4 * g;
      const int8_t* w = panel + g * kIntColumns * 4;
      for (int j = 0; j < kIntColumns; j++)
        for (int t = 0; t < 4; t++) s[j] += static_cast<uint32_t>(x[t] * w[4 * j + t]);
    }
  }
}

}  // namespace

extern const IntKernels kInt_scalar;
const IntKernels kInt_scalar = {tile};

}  // namespace cyb
