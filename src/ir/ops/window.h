// SPDX-License-Identifier: Apache-2.0
// One spatial axis of a sliding window: how convolutions, transposed convolutions and pooling turn sizes,
// pads and auto_pad into outputs. Shape rules and kernels both ask here.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/ops/conv.h"

namespace cyb::ir {

// Sizes, strides, dilations and pads beyond this are refused, so that nothing here overflows.
constexpr int64_t kWindowLimit = int64_t{1} << 30;

struct Window {
  int64_t kernel = 1, stride = 1, dilation = 1;
  int64_t begin = 0, end = 0;  // pads; auto_pad replaces them once the input is known
  AutoPad auto_pad = AutoPad::none;
  bool ceil = false;
  int64_t output_padding = 0, output_shape = -1;  // transposed only; −1: follows

  int64_t extent() const { return (kernel - 1) * dilation + 1; }
  // Outputs along an axis of `in`; sets begin and end. −1 where the window does not fit.
  int64_t outputs(int64_t in);
  int64_t transposed_outputs(int64_t in);
};

// The windows of each axis; `kernel` has one entry an axis. Throws nothing: counts and ranges were checked by
// the rule.
std::vector<Window> windows_of(const ConvAttrs& a, const std::vector<int64_t>& kernel);
std::vector<Window> windows_of(const ConvTransposeAttrs& a, const std::vector<int64_t>& kernel);
std::vector<Window> windows_of(const PoolAttrs& a);

}  // namespace cyb::ir
