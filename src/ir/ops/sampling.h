// SPDX-License-Identifier: Apache-2.0
// What the shape rule and the kernels of Interpolate both need: how each axis is resampled.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/ops/conv.h"

namespace cyb::ir {

struct AxisScale {
  int64_t in = 0, out = 0;            // −1: not known
  double scale = 1;                   // out / in as coordinates use it
  double roi_begin = 0, roi_end = 1;  // of the axis' length; tf_crop_and_resize only
  bool touched = false;               // named by `axes`
};

// One entry for each axis of `in` (−1: not known). Empty spans: not given. What is wrong goes to `why`.
std::vector<AxisScale> interpolate_axes(const InterpolateAttrs& attrs, std::span<const int64_t> in,
                                        std::span<const int64_t> sizes, std::span<const double> scales,
                                        std::span<const double> roi, std::string* why);

}  // namespace cyb::ir
