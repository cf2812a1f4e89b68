// SPDX-License-Identifier: Apache-2.0
// Convolutions from or to channels in blocks (Layout::nchw16c): lanes are output channels, so sums are stored
// as they come. The arithmetic is that of conv.h.
#pragma once

#include "ops/conv/conv.h"

namespace cyb {

// Groups of 16 output channels go in blocks of `vectors` of them, a power of two, then in halves of it for
// what is left.
inline int64_t group_blocks(int64_t groups, int64_t vectors) {
  return groups / vectors + __builtin_popcountll(static_cast<uint64_t>(groups % vectors));
}
// The first group of a block of output channels and how many it has.
struct GroupBlock {
  int64_t first, count;
};
inline GroupBlock group_block(int64_t groups, int64_t vectors, int64_t block) {
  if (block < groups / vectors) return {block * vectors, vectors};
  int64_t first = groups / vectors * vectors, left = groups - first, skip = block - groups / vectors;
  for (int64_t count = vectors / 2;; count /= 2) {
    if (!(left & count)) continue;
    if (skip-- == 0) return {first, count};
    first += count;
  }
}

struct Nchw16cArgs {
  const float* x = nullptr;
  float* y = nullptr;
  const float* w = nullptr;  // pack_lanes()
  bool x_blocked = false, y_blocked = false;
  int64_t batch = 1, in = 1, out = 1, k = 1;  // channels; taps · input channels
  ConvAxis axes[3];                           // of depth 1
  int vectors = 1;                            // of 16 output channels that w keeps together, at most

  // Where a tile finds x[k] of its positions: base + offsets[k] + position · step; without offsets, of 1 × 1
  // from blocks: base + k / 16 · plane + k % 16 + position · 16.
  enum class Source : uint8_t {
    in_place,    // where they lie
    positions,   // a copy of the positions of 1 × 1, in blocks: with strides, or from planes
    rows,        // a padded copy of rows of blocks
    plain_rows,  // `blocks`: a padded copy of rows of planes, split by stride
  } source = Source::in_place;
  const int64_t* offsets = nullptr;
  int64_t step = 16, row_step = 0, plane = 0;
  ConvBlocks blocks;
  int64_t copy_rows = 0, copy_cols = 0;  // of Source::rows, for a whole block of outputs
  int64_t floats = 0;                    // of the copy

  // Blocks of outputs: one row of all positions where nothing lies between them.
  int64_t out_rows = 1, out_cols = 1;
  int64_t rows = 1, cols = 1, row_blocks = 1, col_blocks = 1;
  int64_t splits = 1;  // cuts of the output channels
  ConvFinish finish;

  int64_t groups() const { return (out + 15) / 16; }
  int64_t channel_blocks() const { return group_blocks(groups(), vectors); }
  int64_t items() const { return batch * row_blocks * col_blocks * splits; }
};

}  // namespace cyb
