// SPDX-License-Identifier: Apache-2.0
// How one axis is resampled: for each result index the operand indices and weights that make it. The operator
// is separable, so its definition is one pass of these taps along each axis.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernel.h"
#include "ir/ops/sampling.h"

namespace cyb::cpu {

struct AxisTaps {
  int64_t in = 0, out = 0;
  int64_t taps = 1;            // per result index
  std::vector<int64_t> index;  // [out · taps], within the axis
  std::vector<double> weight;  // [out · taps]
  std::vector<bool> outside;   // [out]: takes the extrapolation value; may be empty
  bool identity = false;
};

// One entry for each axis of the operand.
std::vector<AxisTaps> interpolate_taps(const Call& call);

void run_interpolate_reference(Call& call);
void add_fast_interpolate_rows(KernelTable& table);

}  // namespace cyb::cpu
