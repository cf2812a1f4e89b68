// SPDX-License-Identifier: Apache-2.0
// Convolutions whose groups have one input channel, taken channel by channel.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/conv/finish-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr int64_t kDepthwiseWidth = 64;
inline constexpr int64_t kDepthwiseRows = 4;

// total[width] = Σ w[k] · x[offsets[k] + …] + bias; four vectors at a time hide the latency of the chain.
static void depthwise_flat(const float* x, const int32_t* offsets, const float* w, int64_t taps, float bias,
                           int64_t width, float* total) {
  for (int64_t j = 0; j < width; j += 64) {
    Vec sum[4] = {set1(0.0f), set1(0.0f), set1(0.0f), set1(0.0f)};
    for (int64_t from = 0; from < taps; from += 256) {
      const int64_t to = from + 256 < taps ? from + 256 : taps;
      Vec acc[4] = {set1(0.0f), set1(0.0f), set1(0.0f), set1(0.0f)};
      for (int64_t k = from; k < to; ++k) {
        const Vec a = set1(w[k]);
        const float* p = x + offsets[k] + j;
        CYB_UNROLL for (int v = 0; v < 4; ++v) acc[v] = fma(a, load(p + 16 * v), acc[v]);
      }
      CYB_UNROLL for (int v = 0; v < 4; ++v) sum[v] = sum[v] + acc[v];
    }
    CYB_UNROLL for (int v = 0; v < 4; ++v) store(total + j + 16 * v, sum[v] + set1(bias));
  }
}

// The same for ROWS rows of outputs at once, of a K × K kernel and stride S both ways: each input is read
// once for all of them. x is a padded copy with rows of `pitch`.
template <int K, int S, int ROWS>
static void depthwise_rows(const float* x, int64_t pitch, const float* w, float bias, int64_t width,
                           float* total) {
  for (int64_t j = 0; j < width; j += 16) {
    Vec acc[ROWS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) acc[i] = set1(0.0f);
    CYB_UNROLL for (int r = 0; r < (ROWS - 1) * S + K; ++r) {
      const float* row = x + r * pitch + j * S;
      Vec v[K + 1];
      if constexpr (S == 1) {
        CYB_UNROLL for (int kx = 0; kx < K; ++kx) v[kx] = load(row + kx);
      } else {
        CYB_UNROLL for (int kx = 0; kx < K; kx += 2)
            split_pairs(load(row + kx), load(row + kx + 16), &v[kx], &v[kx + 1]);
      }
      CYB_UNROLL for (int kx = 0; kx < K; ++kx) CYB_UNROLL for (int i = 0; i < ROWS; ++i) {
        const int ky = r - i * S;
        if (ky >= 0 && ky < K) acc[i] = fma(set1(w[ky * K + kx]), v[kx], acc[i]);
      }
    }
    CYB_UNROLL for (int i = 0; i < ROWS; ++i)
        store(total + i * kDepthwiseWidth + j, set1(0.0f) + acc[i] + set1(bias));
  }
}

using DepthwiseRows = void (*)(const float* x, int64_t pitch, const float* w, float bias, int64_t width,
                               float* total);

// Kernels and strides that models use; others go by single rows of a split copy.
template <int ROWS>
static DepthwiseRows depthwise_rows_of(const ConvArgs& a) {
  const ConvAxis &d = a.axes[0], &h = a.axes[1], &w = a.axes[2];
  if (d.kernel != 1 || d.begin != 0 || d.out != 1 || h.dilation != 1 || w.dilation != 1 ||
      h.kernel != w.kernel || h.stride != w.stride)
    return nullptr;
  if (h.kernel == 3 && h.stride == 1) return depthwise_rows<3, 1, ROWS>;
  if (h.kernel == 3 && h.stride == 2) return depthwise_rows<3, 2, ROWS>;
  if (h.kernel == 5 && h.stride == 1) return depthwise_rows<5, 1, ROWS>;
  if (h.kernel == 5 && h.stride == 2) return depthwise_rows<5, 2, ROWS>;
  return nullptr;
}

// Inputs of outputs [oy, oy + rows) × [ox, ox + cols) as they lie, padded.
static void copy_padded(const ConvAxis& h, const ConvAxis& w, const float* x, int64_t oy, int64_t rows,
                        int64_t ox, int64_t pitch, float* to) {
  const int64_t first = ox * w.stride - w.begin;
  for (int64_t r = 0; r < (rows - 1) * h.stride + h.kernel; ++r, to += pitch) {
    const int64_t iy = oy * h.stride - h.begin + r;
    if (iy < 0 || iy >= h.in)
      fill_run(to, pitch, 0.0f);
    else
      copy_strided(x + iy * w.in, w.in, first, 1, pitch, to, 0.0f);
  }
}

static void depthwise(const ConvArgs& args, int64_t begin, int64_t end, float* copy) {
  const ConvBlocks& b = args.blocks;
  const ConvAxis &d = args.axes[0], &h = args.axes[1], &w = args.axes[2];
  const int64_t in_image = d.in * h.in * w.in, positions = d.out * h.out * w.out;
  alignas(64) float total[kDepthwiseRows * kDepthwiseWidth + 16];
  const FinishTile finish = finish_tile_of(args.finish.act.activation);
  const DepthwiseRows four = depthwise_rows_of<kDepthwiseRows>(args), one = depthwise_rows_of<1>(args);
  for (int64_t item = begin; item < end; ++item) {
    int64_t rest = item;
    const int64_t cb = rest % b.col_blocks;
    rest /= b.col_blocks;
    const int64_t rb = rest % b.row_blocks;
    rest /= b.row_blocks;
    const int64_t od = rest % d.out, plane = rest / d.out;  // image and group
    const int64_t oy = rb * b.rows, ox = cb * b.cols;
    const int64_t rows = low(b.rows, h.out - oy), cols = low(b.cols, w.out - ox);
    const float* x = args.x + plane * in_image;
    const int64_t pitch = four ? (cols - 1) * w.stride + w.kernel : b.pitch;
    if (four)
      copy_padded(h, w, x, oy, rows, ox, pitch, copy);
    else
      copy_block(args.axes, b, x, 1, od, oy, rows, ox, cols, 0.0f, copy);
    for (int64_t m = 0; m < args.group_out; ++m) {
      const int64_t channel = plane % args.groups * args.group_out + m;
      const float* weights = args.w + channel * args.k;
      const float bias = args.finish.bias ? args.finish.bias[channel] : 0.0f;
      const int64_t at = (plane * args.group_out + m) * positions;
      const float* residual = args.finish.residual ? args.finish.residual + at : nullptr;
      for (int64_t r = 0; r < rows;) {
        const int64_t some = four && rows - r >= kDepthwiseRows ? kDepthwiseRows : 1;
        for (int64_t j = 0; j < cols; j += kDepthwiseWidth) {
          const int64_t n = low(kDepthwiseWidth, cols - j);
          if (four)
            (some == kDepthwiseRows ? four : one)(copy + r * h.stride * pitch + j * w.stride, pitch, weights,
                                                  bias, (n + 15) / 16 * 16, total);
          else
            depthwise_flat(copy + r * pitch + j, b.offsets, weights, args.k, bias, n, total);
          const int64_t first = (od * h.out + oy + r) * w.out + ox + j;
          Run runs[kDepthwiseRows];
          for (int64_t i = 0; i < some; ++i)
            runs[i] = {static_cast<int32_t>(i * kDepthwiseWidth), static_cast<int32_t>(n), first + i * w.out};
          finish(args.finish, total, 1, 0, runs, static_cast<int>(some), positions, args.y + at, residual);
        }
        r += some;
      }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
