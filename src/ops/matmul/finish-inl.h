// SPDX-License-Identifier: Apache-2.0
// The last step of every product with encoded weights. Included after simd_ISA-inl.h, which gives V8.
#pragma once

#include "ops/matmul/matmul.h"

namespace cyb {
namespace {

inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// Bytes of 8 rows of W in tiles; Codes: kBytes of a block of 32 columns. Ternary's last block may be half of
// one.
template <class Codes>
constexpr int64_t group_bytes(int64_t k) {
  return Codes::kBytes == 64 ? (k + 15) / 16 * 32 : (k + 31) / 32 * Codes::kBytes;
}

// v = (total · factor) · factor2 [· row_scale] [+ bias], into y: matmul.h. Columns n … n + 8 of `rows` rows,
// whose totals are `stride` apart.
__attribute__((noinline)) void finish(const MatmulArgs& args, int64_t row, int64_t rows, int64_t n,
                                      const float* total, int64_t stride) {
  const WeightMatrix& w = args.w;
  float* y = args.y + row * args.ldy + n;
  if (n + 8 <= w.n) {
    const V8 factor = v8_set1(w.factor), factor2 = v8_set1(w.factor2);
    const V8 scale = !w.row_scale              ? v8_zero()
                     : w.row_scale_stride == 0 ? v8_set1(*w.row_scale)
                                               : v8_load(w.row_scale + n);
    const V8 bias = args.bias ? v8_load(args.bias + n) : v8_zero();
    for (int64_t i = 0; i < rows; i++, y += args.ldy, total += stride) {
      V8 v = v8_mul(v8_mul(v8_load(total), factor), factor2);
      if (w.row_scale) v = v8_mul(v, scale);
      if (args.bias) v = v8_add(v, bias);
      if (args.accumulate) v = v8_add(v8_load(y), v);
      v8_store(y, v);
    }
    return;
  }
  const int64_t count = min64(8, w.n - n);
  for (int64_t i = 0; i < rows; i++, y += args.ldy, total += stride)
    for (int64_t j = 0; j < count; j++) {
      float v = total[j] * w.factor * w.factor2;
      if (w.row_scale) v = v * w.row_scale[(n + j) * w.row_scale_stride];
      if (args.bias) v = v + args.bias[n + j];
      y[j] = args.accumulate ? y[j] + v : v;
    }
}

}  // namespace
}  // namespace cyb
