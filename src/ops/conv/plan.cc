// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/plan.h"

#include <algorithm>

#include "base/checked.h"

namespace cyb {
namespace {

// A block's copy should leave room for weights in a second-level cache of 512 KB.
constexpr int64_t kCopyFloats = 48 << 10;
// One channel's copy is read again from the first-level cache.
constexpr int64_t kChannelFloats = 4 << 10;

// The remainders that taps leave, and the furthest whole step.
int64_t phases_of(const ConvAxis& a, std::vector<int32_t>* phases) {
  std::vector<int32_t> all;
  for (int64_t k = 0; k < a.kernel; k++) all.push_back(static_cast<int32_t>(k * a.dilation % a.stride));
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  *phases = std::move(all);
  return (a.kernel - 1) * a.dilation / a.stride;
}

int64_t index_of(const std::vector<int32_t>& phases, int64_t phase) {
  return std::lower_bound(phases.begin(), phases.end(), phase) - phases.begin();
}

}  // namespace

void plan_blocks(ConvPlan* plan, int max_rows, int vectors, int threads, bool per_channel) {
  ConvArgs& a = plan->args;
  bool plain = true;
  for (const ConvAxis& x : a.axes)
    plain = plain && x.kernel == 1 && x.stride == 1 && x.begin == 0 && x.in == x.out;
  if (plain) {
    const int64_t n = a.axes[0].in * a.axes[1].in * a.axes[2].in;
    a.axes[0] = a.axes[1] = {};
    a.axes[2].in = a.axes[2].out = n;
  }
  const ConvAxis &d = a.axes[0], &h = a.axes[1], &w = a.axes[2];
  ConvBlocks& b = a.blocks;
  const int64_t more_y = phases_of(h, &plan->phase_y), more_x = phases_of(w, &plan->phase_x);
  b.phases_y = static_cast<int64_t>(plan->phase_y.size());
  b.phases_x = static_cast<int64_t>(plan->phase_x.size());
  const int64_t channels = per_channel ? 1 : a.group_in;
  const int64_t planes = std::max<int64_t>(1, channels * d.kernel * b.phases_y * b.phases_x);
  a.k = channels * d.kernel * h.kernel * w.kernel;
  a.panels = ceil_div<int64_t>(a.group_out, max_rows);
  a.rows = a.panels ? static_cast<int>(ceil_div(a.group_out, a.panels)) : 1;

  // As many whole rows as the cache holds; where not even one fits, a part of a row.
  const int64_t width = 16 * vectors, most = (per_channel ? kChannelFloats : kCopyFloats) / planes;
  b.cols = std::max<int64_t>(w.out, 1);
  b.rows = std::max<int64_t>(h.out, 1);
  if ((1 + more_y) * (b.cols + more_x) > most) {
    b.rows = 1;
    const int64_t fit = std::max<int64_t>(most / (1 + more_y) - more_x, width) / width * width;
    b.col_blocks = ceil_div(b.cols, std::min(fit, b.cols));
    b.cols = std::min(b.cols, round_up(ceil_div(b.cols, b.col_blocks), width));
  } else {
    b.rows = std::clamp<int64_t>(most / (b.cols + more_x) - more_y, 1, b.rows);
  }
  // Enough items for all threads, of at least a few tiles; then the panels are shared out.
  const int64_t wanted = threads == 1 ? 1 : 4 * int64_t{threads};
  const int64_t outer = std::max<int64_t>(1, a.batch * a.groups * d.out);
  auto items = [&] {
    return outer * ceil_div(std::max<int64_t>(h.out, 1), b.rows) *
           ceil_div(std::max<int64_t>(w.out, 1), b.cols);
  };
  if (items() < wanted && h.out > 1) {
    const int64_t least = ceil_div<int64_t>(2 * width, b.cols + more_x);
    b.rows = std::clamp<int64_t>(h.out * outer / wanted, std::min(least, b.rows), b.rows);
  }
  if (items() < wanted && h.out <= 1 && b.cols > 2 * width)
    b.cols = std::min(b.cols, std::max(2 * width, round_up(ceil_div(w.out * outer, wanted), width)));
  b.row_blocks = ceil_div(std::max<int64_t>(h.out, 1), b.rows);
  b.rows = ceil_div(std::max<int64_t>(h.out, 1), b.row_blocks);
  b.col_blocks = ceil_div(std::max<int64_t>(w.out, 1), b.cols);
  a.splits = per_channel ? 1 : std::clamp<int64_t>(wanted / items(), 1, std::max<int64_t>(a.panels, 1));

  b.pitch = b.cols + more_x;
  b.plane_rows = b.rows + more_y;
  b.plane = b.pitch * b.plane_rows;
  b.floats = planes * b.plane + more_x + width + 64;
  plan->offsets.clear();
  for (int64_t c = 0; c < channels; c++)
    for (int64_t kd = 0; kd < d.kernel; kd++)
      for (int64_t ky = 0; ky < h.kernel; ky++)
        for (int64_t kx = 0; kx < w.kernel; kx++) {
          const int64_t y = ky * h.dilation, x = kx * w.dilation;
          const int64_t plane =
              ((c * d.kernel + kd) * b.phases_y + index_of(plan->phase_y, y % h.stride)) * b.phases_x +
              index_of(plan->phase_x, x % w.stride);
          plan->offsets.push_back(
              static_cast<int32_t>(plane * b.plane + y / h.stride * b.pitch + x / w.stride));
        }
  b.phase_y = plan->phase_y.data();
  b.phase_x = plan->phase_x.data();
  b.offsets = plan->offsets.data();
}

int64_t packed_floats(const ConvArgs& a) { return a.groups * a.panels * a.k * a.rows; }

void pack_weights(const ConvArgs& a, const float* w, float* out) {
  for (int64_t g = 0; g < a.groups; g++)
    for (int64_t p = 0; p < a.panels; p++)
      for (int64_t k = 0; k < a.k; k++)
        for (int64_t i = 0; i < a.rows; i++) {
          const int64_t channel = p * a.rows + i;
          *out++ = channel < a.group_out ? w[(g * a.group_out + channel) * a.k + k] : 0.0f;
        }
}

}  // namespace cyb
