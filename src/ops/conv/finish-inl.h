// SPDX-License-Identifier: Apache-2.0
// From a tile of sums to outputs: residual, activation, and the columns that count.
#pragma once

#include "ops/activation/apply-inl.h"
#include "ops/conv/conv.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// Brings a line nearer, if there is one: no pointer is too wild.
CYB_INLINE void fetch(const float* p) { __builtin_prefetch(p, 0, 2); }

// `count` columns of a tile from column `from` on go to position `to` of a channel.
struct Run {
  int32_t from, count;
  int64_t to;
};

// Columns [n, n + width) of a block whose rows are `pitch` apart, of which `cols` count; `first` is the
// position of its first output.
static int tile_runs(int64_t n, int64_t width, int64_t pitch, bool one_row, int64_t cols, int64_t first,
                     int64_t out_pitch, Run* runs) {
  if (one_row) {
    runs[0] = {0, static_cast<int32_t>(width), first + n};
    return 1;
  }
  int count = 0;
  const int64_t end = n + width;
  for (int64_t r = n / pitch; r * pitch < end; ++r) {
    const int64_t from = n > r * pitch ? n : r * pitch;
    const int64_t to = end < r * pitch + cols ? end : r * pitch + cols;
    if (from < to)
      runs[count++] = {static_cast<int32_t>(from - n), static_cast<int32_t>(to - from),
                       first + r * out_pitch + from - r * pitch};
  }
  return count;
}

// Rows of `total`, `width` apart (16 floats more may be read), to channels of y, `positions` apart.
template <Activation kind>
static void finish_tile(const ConvFinish& f, const float* total, int64_t rows, int64_t width, const Run* runs,
                        int count, int64_t positions, float* y, const float* residual) {
  const Vec alpha = set1(f.act.alpha), beta = set1(f.act.beta);
  const Vec scale = set1(f.scale), shift = set1(f.shift);
  const bool affine = f.scale != 1.0f || f.shift != 0.0f;
  for (int64_t i = 0; i < rows; ++i, total += width, y += positions)
    for (int s = 0; s < count; ++s) {
      const float* from = total + runs[s].from;
      float* to = y + runs[s].to;
      const float* r = residual ? residual + i * positions + runs[s].to : nullptr;
      // Without scale, shift and a residual behind the activation whole vectors go without masks.
      const int64_t whole = affine || (r && f.residual_last) ? 0 : runs[s].count / 16 * 16;
      int64_t j = 0;
      if (r)
        for (; j < whole; j += 16) store(to + j, apply<kind>(load(from + j) + load(r + j), alpha, beta));
      else
        for (; j < whole; j += 16) store(to + j, apply<kind>(load(from + j), alpha, beta));
      for (; j < runs[s].count; j += 16) {
        const int64_t left = runs[s].count - j;
        Vec v = load(from + j);
        if (r && !f.residual_last) v = v + load_first(r + j, left);
        v = apply<kind>(v, alpha, beta);
        if (affine) v = fma(v, scale, shift);
        if (r && f.residual_last) v = v + load_first(r + j, left);
        store_first(to + j, v, left);
      }
    }
}

using FinishTile = void (*)(const ConvFinish& f, const float* total, int64_t rows, int64_t width,
                            const Run* runs, int count, int64_t positions, float* y, const float* residual);

#define CYB_CONV_ACTIVATIONS(f)                                                                      \
  f(relu) f(leaky_relu) f(clamp) f(sigmoid) f(tanh) f(silu) f(gelu_erf) f(gelu_tanh) f(hard_sigmoid) \
      f(hard_swish) f(mish) f(elu)

static FinishTile finish_tile_of(Activation kind) {
  switch (kind) {
#define CYB_CASE(name)   \
  case Activation::name: \
    return finish_tile<Activation::name>;
    CYB_CONV_ACTIVATIONS(CYB_CASE)
#undef CYB_CASE
    default:
      return finish_tile<Activation::identity>;
  }
}

// `n` positions of 16 channels: residual and activation.
template <Activation kind>
static void finish_blocks(const ConvFinish& f, const float* from, int64_t n, float* y,
                          const float* residual) {
  const Vec alpha = set1(f.act.alpha), beta = set1(f.act.beta), scale = set1(f.scale), shift = set1(f.shift);
  const bool affine = f.scale != 1.0f || f.shift != 0.0f;
  for (int64_t i = 0; i < n; ++i) {
    Vec v = load(from + 16 * i);
    if (residual && !f.residual_last) v = v + load(residual + 16 * i);
    v = apply<kind>(v, alpha, beta);
    if (affine) v = fma(v, scale, shift);
    if (residual && f.residual_last) v = v + load(residual + 16 * i);
    store(y + 16 * i, v);
  }
}

using FinishBlocks = void (*)(const ConvFinish& f, const float* from, int64_t n, float* y,
                              const float* residual);
static FinishBlocks finish_blocks_of(Activation kind) {
  switch (kind) {
#define CYB_CASE(name)   \
  case Activation::name: \
    return finish_blocks<Activation::name>;
    CYB_CONV_ACTIVATIONS(CYB_CASE)
#undef CYB_CASE
    default:
      return finish_blocks<Activation::identity>;
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
