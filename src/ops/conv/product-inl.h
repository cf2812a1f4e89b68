// SPDX-License-Identifier: Apache-2.0
// Convolution as a product of packed weights with the shifted rows of a block's copy.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/conv/finish-inl.h"
#include "ops/conv/tile-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// Sums that the registers hold, beside the operands: 8 × 3 of 32 with AVX-512, 6 × 1 (two halves each) of 16
// with AVX2, 6 × 1 (four quarters) of 32 on ARM.
inline constexpr int kTileRows = kParts == 1 ? 8 : kParts == 16 ? 4 : 6;
inline constexpr int kTileVectors = kParts == 1 ? 3 : 1;
inline constexpr int64_t kTileWidth = 16 * kTileVectors;
inline constexpr int64_t kChain = 256;

// One tap; FETCH brings the positions of the next tile nearer.
template <int ROWS, int VECTORS, bool FETCH>
CYB_INLINE void product_step(const float* a, const float* row, Vec (&acc)[ROWS][VECTORS]) {
  Vec x[VECTORS];
  CYB_UNROLL for (int v = 0; v < VECTORS; ++v) {
    x[v] = load(row + 16 * v);
    if (FETCH) fetch(row + 16 * (VECTORS + v));
  }
  fma_rows(acc, x, [&](int i) CYB_INNER { return a + i; });
}

// total[i][16·VECTORS] = Σ a[k][i] · b[offsets[k] + …] + bias[i], chains as conv.h says.
template <int ROWS, int VECTORS, bool FETCH>
static void product_tile(const float* a, const float* b, const int32_t* offsets, int64_t depth,
                         const float* bias, float* total) {
  for (int64_t from = 0; from < depth || from == 0; from += kChain) {
    const int64_t to = low(from + kChain, depth);
    Vec acc[ROWS][VECTORS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int v = 0; v < VECTORS; ++v) acc[i][v] =
        set1(0.0f);
    int64_t k = from;
    for (; k + 2 <= to; k += 2, a += 2 * ROWS) {
      product_step<ROWS, VECTORS, FETCH>(a, b + offsets[k], acc);
      product_step<ROWS, VECTORS, FETCH>(a + ROWS, b + offsets[k + 1], acc);
    }
    if (k < to) {
      product_step<ROWS, VECTORS, FETCH>(a, b + offsets[k], acc);
      a += ROWS;
    }
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int v = 0; v < VECTORS; ++v) {
      float* t = total + (i * VECTORS + v) * 16;
      const Vec sum = (from == 0 ? set1(0.0f) : load(t)) + acc[i][v];
      store(t, to == depth ? sum + set1(bias[i]) : sum);
    }
  }
}

using ProductTile = void (*)(const float* a, const float* b, const int32_t* offsets, int64_t depth,
                             const float* bias, float* total);

template <int VECTORS, bool FETCH>
static ProductTile product_tile_of(int rows) {
  switch (rows) {
#define CYB_CASE(n)                                                       \
  case n:                                                                 \
    if constexpr (n <= kTileRows) return product_tile<n, VECTORS, FETCH>; \
    break;
    CYB_TILE_ROWS(CYB_CASE)
#undef CYB_CASE
  }
  return nullptr;
}

// The last columns of each channel, fewer than a tile has, to planes of a tile's width.
static void copy_tail(const float* x, int64_t channels, int64_t stride, int64_t count, float* to) {
  for (int64_t c = 0; c < channels; ++c, x += stride, to += kTileWidth)
    for (int64_t j = 0; j < kTileWidth; j += 16) store(to + j, load_first(x + j, high(0, count - j)));
}

static void product(const ConvArgs& args, int64_t begin, int64_t end, float* copy) {
  const ConvBlocks& b = args.blocks;
  const ConvAxis &d = args.axes[0], &h = args.axes[1], &w = args.axes[2];
  const int64_t in_image = d.in * h.in * w.in, positions = d.out * h.out * w.out;
  alignas(64) float total[kTileRows * kTileWidth + 16];
  float bias[kTileRows];
  Run runs[kTileWidth];
  const FinishTile finish = finish_tile_of(args.finish.act.activation);
  // By vectors; those that bring the next positions nearer, and those that find them there.
  const ProductTile tiles[2][3] = {
      {product_tile_of<1, true>(args.rows), product_tile_of<(kTileVectors > 1 ? 2 : 1), true>(args.rows),
       product_tile_of<kTileVectors, true>(args.rows)},
      {product_tile_of<1, false>(args.rows), product_tile_of<(kTileVectors > 1 ? 2 : 1), false>(args.rows),
       product_tile_of<kTileVectors, false>(args.rows)}};
  int64_t held = -1;  // the block whose copy is there
  for (int64_t item = begin; item < end; ++item) {
    int64_t rest = item / args.splits;
    const int64_t split = item % args.splits, block = rest;
    const int64_t cb = rest % b.col_blocks;
    rest /= b.col_blocks;
    const int64_t rb = rest % b.row_blocks;
    rest /= b.row_blocks;
    const int64_t od = rest % d.out;
    rest /= d.out;
    const int64_t group = rest % args.groups, image = rest / args.groups;
    const int64_t oy = rb * b.rows, ox = cb * b.cols;
    const int64_t rows = low(b.rows, h.out - oy), cols = low(b.cols, w.out - ox);
    const float* x = args.x + (image * args.groups + group) * args.group_in * in_image;
    if (block != held && !b.direct)
      copy_block(args.axes, b, x, args.group_in, od, oy, rows, ox, cols, 0.0f, copy);
    held = block;
    const int64_t first_panel = args.panels * split / args.splits,
                  last_panel = args.panels * (split + 1) / args.splits;
    const int64_t width = (rows - 1) * b.pitch + cols;
    // One panel of weights stays near while the block passes by, and few channels are written at a time.
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t channel = group * args.group_out + p * args.rows;
      const int64_t channels = low(args.rows, args.group_out - p * args.rows);
      for (int64_t i = 0; i < kTileRows; ++i)
        bias[i] = args.finish.bias && i < channels ? args.finish.bias[channel + i] : 0.0f;
      const float* a = args.w + ((group * args.panels + p) * args.k) * args.rows;
      const int64_t at = (image * args.groups * args.group_out + channel) * positions;
      const float* residual = args.finish.residual ? args.finish.residual + at : nullptr;
      for (int64_t n = 0; n < width; n += kTileWidth) {
        const int64_t vectors = low(kTileVectors, (width - n + 15) / 16);
        const float* from = b.direct ? x + ox + n : copy + n;
        const int32_t* offsets = b.offsets;
        if (b.direct && ox + n + 16 * vectors > w.in) {
          if (p == first_panel) copy_tail(x + ox + n, args.group_in, in_image, w.in - ox - n, copy);
          from = copy;
          offsets = b.tail_offsets;
        }
        tiles[p > first_panel][vectors - 1](a, from, offsets, args.k, bias, total);
        const int count = tile_runs(n, low(16 * vectors, width - n), b.pitch, rows == 1, cols,
                                    (od * h.out + oy) * w.out + ox, w.out, runs);
        finish(args.finish, total, channels, 16 * vectors, runs, count, positions, args.y + at, residual);
      }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
