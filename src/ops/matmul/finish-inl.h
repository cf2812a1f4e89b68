// SPDX-License-Identifier: Apache-2.0
// The last step of every product with encoded weights. Included after simd_ISA-inl.h, which gives V8.
#pragma once

#include "ops/matmul/matmul.h"

namespace cyb {
namespace {

inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// Few rows wait for the weights: asks for BYTES of them, `ahead` (fetch_ahead()) behind p.
template <int64_t BYTES>
__attribute__((always_inline)) inline void fetch_weights(const uint8_t* p, int64_t ahead) {
  if (ahead == 0) return;
#pragma GCC unroll 16
  for (int64_t i = 0; i < BYTES; i += 64) __builtin_prefetch(p + ahead + i);
}

// Bytes of 8 rows of W in tiles; Codes: kBytes of a block of 32 columns. Ternary's last block may be half of
// one.
template <class Codes>
constexpr int64_t group_bytes(int64_t k) {
  return Codes::kBytes == 64 ? (k + 15) / 16 * 32 : (k + 31) / 32 * Codes::kBytes;
}

// v = (total · factor) · factor2 [· row_scale] [+ bias] [+ residual], into y: matmul.h. Columns n … n + 8 of
// one row.
struct Finish8 {
  const MatmulArgs& args;
  V8 factor, factor2;
  __attribute__((always_inline)) explicit Finish8(const MatmulArgs& a)
      : args(a), factor(v8_set1(a.w.factor)), factor2(v8_set1(a.w.factor2)) {}
  __attribute__((always_inline)) void operator()(V8 total, int64_t n, float* y) const {
    const WeightMatrix& w = args.w;
    V8 v = v8_mul(v8_mul(total, factor), factor2);
    if (w.row_scale)
      v = v8_mul(v, w.row_scale_stride == 0 ? v8_set1(*w.row_scale) : v8_load(w.row_scale + n));
    if (args.bias) v = v8_add(v, v8_load(args.bias + n));
    if (args.residual) v = v8_add(v8_load(args.residual + (y - args.y)), v);
    v8_store(y, v);
  }
};

// The same for at most 8 columns from n on of `rows` rows, whose totals are `stride` apart.
__attribute__((noinline)) void finish(const MatmulArgs& args, int64_t row, int64_t rows, int64_t n,
                                      const float* total, int64_t stride) {
  const WeightMatrix& w = args.w;
  float* y = args.y + row * args.ldy + n;
  if (n + 8 <= w.n) {
    const Finish8 last(args);
    for (int64_t i = 0; i < rows; i++, y += args.ldy, total += stride) last(v8_load(total), n, y);
    return;
  }
  const int64_t count = min64(8, w.n - n);
  for (int64_t i = 0; i < rows; i++, y += args.ldy, total += stride)
    for (int64_t j = 0; j < count; j++) {
      float v = total[j] * w.factor * w.factor2;
      if (w.row_scale) v = v * w.row_scale[(n + j) * w.row_scale_stride];
      if (args.bias) v = v + args.bias[n + j];
      if (args.residual) v = args.residual[y + j - args.y] + v;
      y[j] = v;
    }
}

}  // namespace
}  // namespace cyb
