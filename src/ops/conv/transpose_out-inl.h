// SPDX-License-Identifier: Apache-2.0
// From sums whose lanes are channels to outputs: transposed, then residual and activation.
#pragma once

#include "ops/conv/finish-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// Floats between positions and between rows of the sums; between rows and between channels of y.
struct TransposedRows {
  int64_t position, row, y_row, y_channel;
};

// `rows` × `n` positions of `channels` ≤ 16 channels, with the biases in them; sums of up to 15 positions
// more are read.
template <Activation kind>
static void transpose_out(const ConvFinish& f, const TransposedRows& s, const float* from, int64_t rows,
                          int64_t n, int64_t channels, float* y, const float* residual) {
  const Vec alpha = set1(f.act.alpha), beta = set1(f.act.beta), scale = set1(f.scale), shift = set1(f.shift);
  const bool affine = f.scale != 1.0f || f.shift != 0.0f;
  alignas(64) float part[16 * 16];
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t j = 0; j < n; j += 16) {
      transpose16(from + r * s.row + j * s.position, s.position, part, 16);
      const int64_t left = n - j, at = r * s.y_row + j;
      int64_t i = 0;
      // Without scale, shift and a residual behind the activation whole vectors go without masks.
      if (left >= 16 && !affine && !(residual && f.residual_last)) {
        if (residual)
          for (; i < channels; ++i)
            store(y + i * s.y_channel + at,
                  apply<kind>(load(part + 16 * i) + load(residual + i * s.y_channel + at), alpha, beta));
        else
          for (; i < channels; ++i)
            store(y + i * s.y_channel + at, apply<kind>(load(part + 16 * i), alpha, beta));
      }
      for (; i < channels; ++i) {
        Vec v = load(part + 16 * i);
        if (residual && !f.residual_last) v = v + load_first(residual + i * s.y_channel + at, left);
        v = apply<kind>(v, alpha, beta);
        if (affine) v = fma(v, scale, shift);
        if (residual && f.residual_last) v = v + load_first(residual + i * s.y_channel + at, left);
        store_first(y + i * s.y_channel + at, v, left);
      }
    }
}

using TransposeOut = void (*)(const ConvFinish& f, const TransposedRows& s, const float* from, int64_t rows,
                              int64_t n, int64_t channels, float* y, const float* residual);
static TransposeOut transpose_out_of(Activation kind) {
  switch (kind) {
#define CYB_CASE(name)   \
  case Activation::name: \
    return transpose_out<Activation::name>;
    CYB_CONV_ACTIVATIONS(CYB_CASE)
#undef CYB_CASE
    default:
      return transpose_out<Activation::identity>;
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
