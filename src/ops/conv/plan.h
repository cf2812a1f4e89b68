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
// convolution without neighbours (1 × 1, stride 1) becomes one long row, except with `keep_rows`.
// `per_channel`: one channel at a time. `row_blocks`: about so many blocks of rows at least.
struct PlanOptions {
  bool keep_rows = false, per_channel = false;
  int64_t row_blocks = 1;
  int64_t rows = 0, cols = 0;  // of a block, the panels not cut; 0: as estimated
};
void plan_blocks(ConvPlan* plan, int max_rows, int vectors, int threads, const PlanOptions& options = {});

// Panels of `rows` output channels, the last one filled with zeros: [group][panel][k][rows].
int64_t packed_floats(const ConvArgs& args);
void pack_weights(const ConvArgs& args, const float* w, float* out);

// Transposed: from batch, groups, group_in, group_out and axes as the operator has them.
struct ConvTransposedPlan {
  ConvPlan plan;
  ConvTransposedArgs args;
  std::vector<int64_t> phase_begin;
  std::vector<int32_t> offsets, taps;  // taps: which of the kernel's, in the order of the packed weights
};
void plan_transposed(ConvTransposedPlan* plan, const ConvArgs& args, int max_rows, int vectors, int threads);
int64_t packed_transposed_floats(const ConvTransposedPlan& plan);
void pack_transposed(const ConvTransposedPlan& plan, const float* w, float* out);

}  // namespace cyb
