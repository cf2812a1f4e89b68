// SPDX-License-Identifier: Apache-2.0
// Transposed convolution: outputs of one remainder by the strides are a convolution of stride 1 with the taps
// that reach them.
#pragma once

#include "ops/conv/product-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// to[i][j·phases + p] = from[p][i][j] for `width` columns, a multiple of 16.
static void interleave_phases(const float* from, int64_t phases, int64_t rows, int64_t width, float* to) {
  for (int64_t i = 0; i < rows; ++i, to += width * phases) {
    if (phases == 2) {
      for (int64_t j = 0; j < width; j += 16)
        store_pairs(to + 2 * j, load(from + i * width + j), load(from + (rows + i) * width + j));
      continue;
    }
    for (int64_t p = 0; p < phases; ++p) {
      const float* row = from + (p * rows + i) * width;
      for (int64_t j = 0; j < width; ++j) to[j * phases + p] = row[j];
    }
  }
}

static void transposed(const ConvTransposedArgs& args, int64_t begin, int64_t end, float* scratch) {
  const ConvArgs& c = args.conv;
  const ConvBlocks& b = c.blocks;
  const ConvAxis &d = c.axes[0], &h = c.axes[1], &w = c.axes[2];
  const int64_t in_image = d.in * h.in * w.in, positions = args.out[0] * args.out[1] * args.out[2];
  const int64_t px = args.stride[2], py = args.stride[1], pd = args.stride[0];
  float* copy = scratch;
  float* sums = copy + (b.floats + 15) / 16 * 16;     // [px][rows][width]
  float* mixed = sums + px * kTileRows * kTileWidth;  // [rows][width·px], 16 more
  float bias[kTileRows];
  Run runs[kTileWidth];
  const FinishTile finish = finish_tile_of(c.finish.act.activation);
  int64_t held = -1;
  for (int64_t item = begin; item < end; ++item) {
    int64_t rest = item / c.splits;
    const int64_t split = item % c.splits, block = rest;
    const int64_t cb = rest % b.col_blocks;
    rest /= b.col_blocks;
    const int64_t rb = rest % b.row_blocks;
    rest /= b.row_blocks;
    const int64_t md = rest % d.out;
    rest /= d.out;
    const int64_t group = rest % c.groups, image = rest / c.groups;
    const int64_t my = rb * b.rows, mx = cb * b.cols;
    const int64_t rows = low(b.rows, h.out - my), cols = low(b.cols, w.out - mx);
    if (block != held)
      copy_block(c.axes, b, c.x + (image * c.groups + group) * c.group_in * in_image, c.group_in, md, my,
                 rows, mx, cols, 0.0f, copy);
    held = block;
    const int64_t first_panel = c.panels * split / c.splits, last_panel = c.panels * (split + 1) / c.splits;
    const int64_t width = (rows - 1) * b.pitch + cols;
    for (int64_t p = first_panel; p < last_panel; ++p) {
      const int64_t channel = group * c.group_out + p * c.rows;
      const int64_t channels = low(c.rows, c.group_out - p * c.rows);
      for (int64_t i = 0; i < kTileRows; ++i)
        bias[i] = c.finish.bias && i < channels ? c.finish.bias[channel + i] : 0.0f;
      const float* panel = c.w + (group * c.panels + p) * args.taps * c.group_in * c.rows;
      const int64_t at = (image * c.groups * c.group_out + channel) * positions;
      for (int64_t n = 0; n < width; n += kTileWidth) {
        const int64_t vectors = low(kTileVectors, (width - n + 15) / 16);
        const ProductTile tile = vectors == 1   ? product_tile_of<1, true>(c.rows)
                                 : vectors == 2 ? product_tile_of<(kTileVectors > 1 ? 2 : 1), true>(c.rows)
                                                : product_tile_of<kTileVectors, true>(c.rows);
        const int count =
            tile_runs(n, low(16 * vectors, width - n), b.pitch, rows == 1, cols, 0, w.out, runs);
        for (int64_t yz = 0; yz < pd * py; ++yz) {
          const int64_t z = yz / py, y = yz % py, od = md * pd + z;
          if (od >= args.out[0]) continue;
          for (int64_t x = 0; x < px; ++x) {
            const int64_t phase = yz * px + x;
            const int64_t from = args.phase_begin[phase], k = args.phase_begin[phase + 1] - from;
            tile(panel + from * c.rows, copy + n, args.offsets + from, k, bias,
                 sums + x * c.rows * 16 * vectors);
          }
          const float* total = sums;
          if (px > 1) {
            interleave_phases(sums, px, c.rows, 16 * vectors, mixed);
            total = mixed;
          }
          // `to` of a run counts positions m of the block's rows; now it becomes one of outputs.
          Run out[kTileWidth];
          int outs = 0;
          for (int s = 0; s < count; ++s) {
            const int64_t oy = (my + runs[s].to / w.out) * py + y, ox = (mx + runs[s].to % w.out) * px;
            const int64_t left = args.out[2] - ox, all = runs[s].count * px;
            if (oy >= args.out[1] || left <= 0) continue;
            out[outs++] = {static_cast<int32_t>(runs[s].from * px), static_cast<int32_t>(low(all, left)),
                           (od * args.out[1] + oy) * args.out[2] + ox};
          }
          finish(c.finish, total, channels, 16 * vectors * px, out, outs, positions, c.y + at, nullptr);
        }
      }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
