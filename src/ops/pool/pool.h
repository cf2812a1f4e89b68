// SPDX-License-Identifier: Apache-2.0
// f32 pooling on the CPU over N C spatial: maxima and averages. The same bits for every instruction set and
// any cut of the work: taps in order (kd, ky, kx); an average is Σ ÷ (depth count · height count · width
// count), each of them exact.
#pragma once

#include "ops/conv/conv.h"

namespace cyb {

struct PoolArgs {
  const float* x = nullptr;
  float* y = nullptr;
  bool average = false;
  bool blocked = false;  // channels in blocks (Layout::nchw16c): maxima, and averages of whole planes
  int64_t batch = 1, channels = 1;
  ConvAxis axes[3];
  ConvBlocks blocks;
  int64_t taps = 1;
  // Averages: how many taps count for each output of an axis.
  const float* counts[3] = {};

  // The channels of a block follow each other: so each thread has positions of its own, as in convolutions,
  // and finds near what it wrote there itself.
  int64_t items() const {
    if (blocked) return batch * (average ? 1 : axes[1].out) * channels / 16;
    return batch * axes[0].out * blocks.row_blocks * blocks.col_blocks * channels;
  }
};

struct PoolKernels {
  // Items [begin, end); `copy` holds a block's copy or a line of a maximum, and rows after each step.
  void (*pool)(const PoolArgs& args, int64_t begin, int64_t end, float* copy);
};
const PoolKernels& pool_kernels(Isa isa);

}  // namespace cyb
