// SPDX-License-Identifier: Apache-2.0
// How a convolution of known shapes is cut into blocks, and its weights packed for the kernels.
#pragma once

#include <vector>

#include "ops/conv/conv.h"

namespace cyb {

struct ConvPlan {
  ConvArgs args;
  std::vector<int32_t> phase_y, phase_x, offsets, tail_offsets;
};

// Fills `plan.args` but its data: from batch, groups, group_in, group_out and axes, which are set. A
// convolution without neighbours (1 × 1, stride 1) becomes one long row. `per_channel`: depthwise, one
// channel at a time.
void plan_blocks(ConvPlan* plan, int max_rows, int vectors, int threads, bool per_channel = false);

// Panels of `rows` output channels, the last one filled with zeros: [group][panel][k][rows].
int64_t packed_floats(const ConvArgs& args);
void pack_weights(const ConvArgs& args, const float* w, float* out);

}  // namespace cyb
