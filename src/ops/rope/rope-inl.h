// SPDX-License-Identifier: Apache-2.0
// Application of rope.h: two products and a sum, each rounded, as the reference does it.
#pragma once

#include "ops/rope/rope.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE void turn_halves(const float* x, const float* c, const float* s, int32_t pairs, float* y) {
  for (int32_t j = 0; j < pairs; j += 16) {
    const int64_t left = pairs - j;
    const Vec a = load_first(x + j, left), b = load_first(x + pairs + j, left);
    const Vec cosine = load_first(c + j, left), sine = load_first(s + j, left);
    store_first(y + j, a * cosine - b * sine, left);
    store_first(y + pairs + j, b * cosine + a * sine, left);
  }
}

CYB_INLINE void turn_neighbours(const float* x, const float* c, const float* s, int32_t pairs, float* y) {
  for (int32_t j = 0; j < pairs; ++j) {
    const float a = x[2 * j], b = x[2 * j + 1];
    y[2 * j] = a * c[j] - b * s[j];
    y[2 * j + 1] = b * c[j] + a * s[j];
  }
}

static void rope_rows(const RopeArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float *c = a.cos + row * a.pairs, *s = a.sin + row * a.pairs;
    for (int32_t h = 0; h < a.heads; ++h) {
      const float* x = a.x + row * a.x_row + h * a.x_head;
      float* y = a.y + row * a.y_row + h * a.y_head;
      if (a.pairing == RopePairs::half)
        turn_halves(x, c, s, a.pairs, y);
      else
        turn_neighbours(x, c, s, a.pairs, y);
      if (x != y)
        for (int32_t d = 2 * a.pairs; d < a.head_dim; ++d) y[d] = x[d];
    }
  }
}

constexpr RopeKernels make_rope_kernels() { return {rope_rows}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
