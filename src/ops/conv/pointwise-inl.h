// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows do not overlap, of few or strided positions: lanes are output channels,
// positions are read one by one where they lie. The sums and their bits are those of product-inl.h.
#pragma once

#include "ops/conv/transpose_out-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr int kPointwiseRows = kParts == 1 ? 12 : kParts == 16 ? 4 : 6;
inline constexpr int kPointwiseVectors = kParts == 1 ? 2 : 1;
inline constexpr int64_t kPointwiseChunk = 64;  // positions whose sums wait together

// m[position][channel] = Σ x[offsets[k] + position·step] · w[k][channel] + bias[channel].
template <int ROWS, int VECTORS>
static void pointwise_tile(const float* x, int64_t step, const int64_t* offsets, const float* w,
                           int64_t depth, const float* bias, float* m, int64_t m_stride) {
  // What comes next, the following positions and block of w, is fetched on the way.
  const int64_t ahead = depth * 16 * VECTORS, x_ahead = step * ROWS;
  for (int64_t from = 0; from < depth; from += 256) {
    const int64_t to = from + 256 < depth ? from + 256 : depth;
    Vec acc[ROWS][VECTORS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] =
        set1(0.0f);
    for (int64_t k = from; k < to; ++k, w += 16 * VECTORS) {
      const float* at = x + offsets[k];
      Vec u[VECTORS];
      CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
        u[j] = load(w + 16 * j);
        fetch(w + ahead + 16 * j);
      }
      fetch(at + x_ahead);
      CYB_UNROLL for (int i = 0; i < ROWS; ++i) {
        const Vec v = set1(at[i * step]);
        CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] = fma(u[j], v, acc[i][j]);
      }
    }
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
      float* t = m + i * m_stride + 16 * j;
      const Vec sum = (from == 0 ? set1(0.0f) : load(t)) + acc[i][j];
      store(t, to == depth ? sum + load(bias + 16 * j) : sum);
    }
  }
}

using PointwiseTile = void (*)(const float* x, int64_t step, const int64_t* offsets, const float* w,
                               int64_t depth, const float* bias, float* m, int64_t m_stride);

template <int VECTORS>
static PointwiseTile pointwise_tile_of(int64_t rows) {
  switch (rows) {
#define CYB_CASE(n) \
  case n:           \
    return pointwise_tile<n, VECTORS>;
    CYB_CASE(1)
    CYB_CASE(2)
    CYB_CASE(3)
    CYB_CASE(4)
#ifdef CYB_SIMD_TARGET
    CYB_CASE(5)
    CYB_CASE(6)
#if CYB_SIMD_TARGET == HWY_AVX3
    CYB_CASE(7)
    CYB_CASE(8)
    CYB_CASE(9)
    CYB_CASE(10)
    CYB_CASE(11)
    CYB_CASE(12)
#endif
#endif
#undef CYB_CASE
  }
  return nullptr;
}

// While the sums of positions [from, to) run, the share of the residual's lines that these have of [first,
// last).
CYB_INLINE void fetch_residual(const PointwiseArgs& a, int64_t image, int64_t channel, int64_t width,
                               int64_t first, int64_t last, int64_t from, int64_t to) {
  const int64_t positions = a.out_depth * a.out_height * a.out_width, n = last - first;
  const int64_t end = width * (to - first) / n;
  for (int64_t c = width * (from - first) / n; c < end && channel + c < a.out; ++c) {
    const int64_t at = (image * a.out + channel + c) * positions;
    for (int64_t p = first; p < last; p += 16) fetch(a.finish.residual + at + p);
  }
}

static void pointwise(const PointwiseArgs& a, int64_t begin, int64_t end) {
  alignas(64) float m[(kPointwiseChunk + 16) * 16 * kPointwiseVectors];
  alignas(64) float bias[16 * kPointwiseVectors];
  const TransposeOut transpose_out = transpose_out_of(a.finish.act.activation);
  const int64_t groups = (a.out + 15) / 16, blocks = (groups + kPointwiseVectors - 1) / kPointwiseVectors;
  const int64_t positions = a.out_depth * a.out_height * a.out_width;
  for (int64_t i = 0; i < kPointwiseChunk + 16; ++i)
    for (int v = 0; v < kPointwiseVectors; ++v) store(m + (i * kPointwiseVectors + v) * 16, set1(0.0f));
  for (int64_t item = begin; item < end; ++item) {
    const int64_t split = item % a.splits, chunk = item / a.splits % a.chunks,
                  image = item / a.splits / a.chunks;
    const int64_t first = positions * chunk / a.chunks, last = positions * (chunk + 1) / a.chunks;
    const float* x = a.x + image * a.image;
    for (int64_t b = blocks * split / a.splits; b < blocks * (split + 1) / a.splits; ++b) {
      const int64_t left = groups - b * kPointwiseVectors,
                    vectors = left < kPointwiseVectors ? left : kPointwiseVectors;
      const int64_t channel = b * kPointwiseVectors * 16, width = 16 * vectors;
      for (int64_t i = 0; i < width; ++i)
        bias[i] = a.finish.bias && channel + i < a.out ? a.finish.bias[channel + i] : 0.0f;
      const float* w = a.w + channel * a.taps;
      for (int64_t p = first; p < last;) {
        const int64_t row = p / a.out_width, row_end = (row + 1) * a.out_width;
        const int64_t end_p = row_end < last ? row_end : last, n = end_p - p;
        const int64_t at =
            row / a.out_height * a.depth_step + row % a.out_height * a.row_step + p % a.out_width * a.step;
        const int64_t parts = (n + kPointwiseRows - 1) / kPointwiseRows;
        for (int64_t i = 0; i < parts; ++i) {
          const int64_t r = n * i / parts, rows = n * (i + 1) / parts - r;
          if (a.finish.residual) fetch_residual(a, image, channel, width, first, last, p + r, p + r + rows);
          (vectors == 1 ? pointwise_tile_of<1>(rows) : pointwise_tile_of<kPointwiseVectors>(rows))(
              x + at + r * a.step, a.step, a.offsets, w, a.taps, bias, m + (p - first + r) * width, width);
        }
        p = end_p;
      }
      for (int64_t v = 0; v < vectors; ++v) {
        const int64_t c = channel + 16 * v, to = (image * a.out + c) * positions + first;
        transpose_out(a.finish, {width, 0, 0, positions}, m + 16 * v, 1, last - first,
                      a.out - c < 16 ? a.out - c : 16, a.y + to,
                      a.finish.residual ? a.finish.residual + to : nullptr);
      }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
