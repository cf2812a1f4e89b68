// SPDX-License-Identifier: Apache-2.0
// How a convolution from or to channels in blocks is cut, and its weights packed.
#pragma once

#include <vector>

#include "ops/conv/nchw16c.h"
#include "ops/conv/plan.h"

namespace cyb {

struct Nchw16cPlan {
  Nchw16cArgs args;
  ConvPlan plain;  // of plain_rows
  std::vector<int64_t> offsets;
};
// From layouts, batch, channels and axes: where operands are read and how the work is cut. `vectors`: at
// most.
void nchw16c_plan(Nchw16cPlan* plan, int vectors, int threads);

// Weights [out][k] for kernels whose lanes are output channels: [block of output channels][k][channel of the
// block], blocks as in group_block(), zeros behind the last channel.
void pack_lanes(int64_t out, int64_t k, int vectors, const float* w, float* packed);

}  // namespace cyb
