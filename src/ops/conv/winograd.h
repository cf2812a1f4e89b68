// SPDX-License-Identifier: Apache-2.0
// 3 × 3 convolutions of stride 1 by Winograd's minimal filtering: tiles of T × T outputs (T = 4 or 2) from (T
// + 2)² products instead of 9·T². Fewer roundings are exact: with T = 4 and the points 0, ±√½, ±√2, ∞ the
// largest error is near 1.5e-6 of the largest output, five times that of a chain.
//
// The arithmetic, the same bits for every instruction set and any cut of the work: the weights' transform is
// computed in f64 and rounded once; that of a tile by the fixed sequences of winograd-inl.h, columns first;
// products are chains over ascending input channels in blocks of 256 as in conv.h; then the sums' transform,
// columns first, and + bias.
#pragma once

#include "ops/conv/conv.h"

namespace cyb {

struct WinogradArgs {
  const float* x = nullptr;
  float* y = nullptr;
  const float* u = nullptr;                   // transformed weights: winograd_pack()
  int tile = 4;                               // T
  bool x_blocked = false, y_blocked = false;  // channels in blocks (Layout::nchw16c)
  int64_t batch = 1, in = 1, out = 1;         // channels
  int64_t height = 1, width = 1, out_height = 1, out_width = 1;
  int64_t pad_y = 0, pad_x = 0;
  int64_t tiles_y = 1, tiles_x = 1;
  int64_t block = 1, blocks = 1;  // tiles of an item, in row-major order; items an image
  int64_t splits = 1;             // cuts of the output channels
  int vectors = 1;                // of 16 output channels that u keeps together
  ConvFinish finish;

  int64_t items() const { return batch * blocks * splits; }
  int64_t products() const { return (tile + 2) * (tile + 2); }
  int64_t in_padded() const { return (in + 15) / 16 * 16; }
  int64_t out_groups() const { return (out + 15) / 16; }
  int64_t floats() const;  // of scratch for each thread
};

// From batch, channels, sizes and pads: tiles, blocks and cuts.
void winograd_plan(WinogradArgs* args, int vectors, int threads);
// Estimated cycles of one vector multiply-add; and of the product of product-inl.h. Of shapes only.
double winograd_cost(const WinogradArgs& args);
double product_cost(const WinogradArgs& args);

// [xi][block of `vectors`·16 output channels][in][channel], the last block narrower.
int64_t winograd_floats(const WinogradArgs& args);
void winograd_pack(const WinogradArgs& args, const float* w, float* u);

}  // namespace cyb
