// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/window.h"

#include <algorithm>

namespace cyb::ir {

namespace {

void split_pad(AutoPad how, int64_t total, int64_t* begin, int64_t* end) {
  // The odd one goes to the end with same_upper, to the front with same_lower.
  *begin = how == AutoPad::same_upper ? total / 2 : total - total / 2;
  *end = total - *begin;
}

std::vector<Window> windows(const std::vector<int64_t>& kernel, const std::vector<int64_t>& strides,
                            const std::vector<int64_t>& pads, const std::vector<int64_t>& dilations,
                            AutoPad auto_pad) {
  std::vector<Window> all(kernel.size());
  for (size_t i = 0; i < all.size(); i++) {
    Window& w = all[i];
    w.kernel = kernel[i];
    if (!strides.empty()) w.stride = strides[i];
    if (!dilations.empty()) w.dilation = dilations[i];
    if (!pads.empty()) {
      w.begin = pads[i];
      w.end = pads[i + kernel.size()];
    }
    w.auto_pad = auto_pad;
  }
  return all;
}

}  // namespace

int64_t Window::outputs(int64_t in) {
  if (auto_pad == AutoPad::valid) {
    begin = end = 0;
  } else if (auto_pad != AutoPad::none) {
    const int64_t wanted = (in + stride - 1) / stride;
    split_pad(auto_pad, std::max<int64_t>(0, (wanted - 1) * stride + extent() - in), &begin, &end);
    return wanted;
  }
  const int64_t room = in + begin + end - extent();
  if (room < 0 && (!ceil || room <= -stride)) return -1;
  int64_t out = room < 0 ? 1 : room / stride + 1;
  if (ceil && room > 0 && room % stride != 0) out++;
  // A window that starts beyond the input and its left pad does not count.
  if (ceil && out > 1 && (out - 1) * stride >= in + begin) out--;
  return out;
}

int64_t Window::transposed_outputs(int64_t in) {
  const int64_t full = stride * (in - 1) + output_padding + extent();
  int64_t out = output_shape;
  if (out < 0 && auto_pad == AutoPad::valid) begin = end = 0;
  if (out < 0 && (auto_pad == AutoPad::none || auto_pad == AutoPad::valid)) {
    out = in == 0 ? 0 : full - begin - end;
    return out < 0 ? -1 : out;
  }
  if (out < 0) out = in * stride;
  split_pad(auto_pad, std::max<int64_t>(0, full - out), &begin, &end);
  return out;
}

std::vector<Window> windows_of(const ConvAttrs& a, const std::vector<int64_t>& kernel) {
  return windows(kernel, a.strides, a.pads, a.dilations, a.auto_pad);
}

std::vector<Window> windows_of(const ConvTransposeAttrs& a, const std::vector<int64_t>& kernel) {
  std::vector<Window> all = windows(kernel, a.strides, a.pads, a.dilations, a.auto_pad);
  for (size_t i = 0; i < all.size(); i++) {
    if (!a.output_padding.empty()) all[i].output_padding = a.output_padding[i];
    if (!a.output_shape.empty()) all[i].output_shape = a.output_shape[i];
  }
  return all;
}

std::vector<Window> windows_of(const PoolAttrs& a) {
  std::vector<Window> all = windows(a.kernel, a.strides, a.pads, a.dilations, a.auto_pad);
  for (Window& w : all) w.ceil = a.ceil;
  return all;
}

}  // namespace cyb::ir
