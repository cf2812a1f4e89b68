// SPDX-License-Identifier: Apache-2.0
// f32 convolutions on the CPU. Layout is N C spatial, in nchw16c.h and winograd.h also with channels in
// blocks; axes are depth, height, width, the missing ones of length 1.
//
// The arithmetic, the same bits for every instruction set and any cut of the work: for each output one chain
// a = fma(w[k], x[k], a) from 0 over ascending k = (input channel, kd, ky, kx), taps in the padding as zeros,
// in blocks of 256; total = 0 + a₀ + a₁ + … in index order; then act(total + bias + residual), or act(total +
// bias) + residual; with a scale or shift fma(act(…), scale, shift). Transposed convolutions: the chain has
// the taps that reach an output, in the same order. Winograd (winograd.h) has its own order; `exact` keeps to
// the above.
#pragma once

#include <cstdint>

#include "base/cpu_features.h"
#include "ops/activation/activation.h"

namespace cyb {

struct ConvAxis {
  int64_t in = 1, out = 1;
  int64_t kernel = 1, stride = 1, dilation = 1, begin = 0;
};

// What happens to sums.
struct ConvFinish {
  const float* bias = nullptr;      // one value a channel
  const float* residual = nullptr;  // as y
  bool residual_last = false;
  float scale = 1, shift = 0;  // behind the activation, one multiply-add
  ActivationArgs act;          // activation, alpha, beta
};

// A block of outputs reads a copy of its inputs, padded and split by stride: plane (channel, kd, ky mod
// stride, kx mod stride) of `plane` floats holds rows of `pitch`. So every tap of consecutive outputs is a
// run of consecutive floats.
struct ConvBlocks {
  int64_t rows = 1, cols = 1;  // of outputs
  int64_t row_blocks = 1, col_blocks = 1;
  int64_t pitch = 1, plane_rows = 1, plane = 1;
  int64_t phases_y = 1, phases_x = 1;
  const int32_t *phase_y = nullptr, *phase_x = nullptr;  // which remainders occur, ascending
  const int32_t* offsets = nullptr;                      // of tap k = (channel, kd, ky, kx) in the copy
  int64_t floats = 0;                                    // of the copy, with room for a panel behind it
  // Without neighbours nothing is copied: offsets are those of x. Only a last tile that would read beyond the
  // row is, to planes of one tile's width.
  bool direct = false;
  const int32_t* tail_offsets = nullptr;
};

struct ConvArgs {
  const float* x = nullptr;
  float* y = nullptr;
  const float* w = nullptr;  // packed: [group][panel][k][rows]; depthwise: [channel][k]
  int64_t batch = 1, groups = 1;
  int64_t group_in = 1, group_out = 1;  // channels of a group
  ConvAxis axes[3];
  int64_t k = 1;       // taps · channels
  int rows = 1;        // output channels of a panel
  int64_t panels = 1;  // of a group
  int64_t splits = 1;  // cuts of the panels
  ConvBlocks blocks;
  ConvFinish finish;

  int64_t items() const {
    return batch * groups * axes[0].out * blocks.row_blocks * blocks.col_blocks * splits;
  }
};

// A transposed convolution. conv.axes are those of the convolution that outputs of one remainder are: `out` =
// outputs of that remainder, `kernel` = inputs that any of them reads, stride 1. conv.w is
// [group][panel][taps of the first remainder, of the second, …][rows].
struct ConvTransposedArgs {
  ConvArgs conv;
  int64_t stride[3] = {1, 1, 1}, out[3] = {1, 1, 1};
  int64_t taps = 1;                      // of all remainders: the kernel's
  const int64_t* phase_begin = nullptr;  // [remainders + 1], into offsets
  const int32_t* offsets = nullptr;  // of tap k = (channel, kd, ky, kx) of a remainder in the block's copy
  int64_t floats() const;            // of scratch for each thread
};

// A convolution without pads or groups whose windows do not overlap: 1 × 1, or patches as large as the
// strides.
struct PointwiseArgs {
  static constexpr int64_t kMostPositions = 64;  // of a chunk
  const float* x = nullptr;
  float* y = nullptr;
  const float* w =
      nullptr;  // [block of pointwise_vectors · 16 output channels][tap][channel], the last one narrower
  int64_t batch = 1, taps = 1, out = 1;
  const int64_t* offsets = nullptr;  // of tap k = (channel, kd, ky, kx) in x, from a position's first
  int64_t image = 1;                 // floats of one x
  int64_t out_depth = 1, out_height = 1, out_width = 1;
  int64_t step = 1, row_step = 1, depth_step = 1;  // floats of x between positions, rows and planes of them
  int64_t chunks = 1, splits = 1;                  // cuts of the positions, of the channels
  bool copied = false;  // positions are copied next to each other first: 1 × 1 only
  ConvFinish finish;
  int64_t items() const { return batch * chunks * splits; }
};

struct WinogradArgs;
struct Nchw16cArgs;

struct ConvKernels {
  Isa isa;
  int rows, vectors;  // the largest tile: output channels, vectors of 16 positions
  // Items [begin, end) of ConvArgs::items(); `copy` is `blocks.floats` long.
  void (*product)(const ConvArgs& args, int64_t begin, int64_t end, float* copy);
  // Items of `conv.items()`; scratch is `floats()` long.
  void (*transposed)(const ConvTransposedArgs& args, int64_t begin, int64_t end, float* scratch);
  // Items of ConvArgs::items() where group_in = 1; w is as it lies.
  void (*depthwise)(const ConvArgs& args, int64_t begin, int64_t end, float* copy);
  int pointwise_vectors;
  // `copy` is pointwise_floats() long.
  void (*pointwise)(const PointwiseArgs& args, int64_t begin, int64_t end, float* copy);
  int64_t (*pointwise_floats)(const PointwiseArgs& args);
  int winograd_vectors;  // WinogradArgs::vectors
  void (*winograd)(const WinogradArgs& args, int64_t begin, int64_t end, float* scratch);
  int nchw16c_vectors;  // Nchw16cArgs::vectors, at most
  // Items of Nchw16cArgs::items(); `copy` is `floats` long.
  void (*nchw16c)(const Nchw16cArgs& args, int64_t begin, int64_t end, float* copy);
};

const ConvKernels& conv_kernels(Isa isa);

}  // namespace cyb
