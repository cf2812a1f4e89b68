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

constexpr int64_t kMostRowBlocks = 199;  // worth looking at

struct CutQuery {
  const ConvArgs& a;
  int64_t planes, more_y, more_x, width;
  int threads;
  bool per_channel;
  int64_t row_blocks;  // about so many, or more
};
struct Cut {
  int64_t rows, cols, splits;
};

// Blocks of whole rows, or of parts of one row, and cuts of the panels: those of the least estimated time.
// Estimates are in cycles of one vector multiply-add.
Cut best_cut(const CutQuery& q) {
  const int64_t height = std::max<int64_t>(q.a.axes[1].out, 1),
                length = std::max<int64_t>(q.a.axes[2].out, 1);
  const int64_t outer = std::max<int64_t>(1, q.a.batch * q.a.groups * q.a.axes[0].out);
  const int64_t room = q.per_channel ? kChannelFloats : kCopyFloats;
  Cut best{1, std::min(length, q.width), 1};
  double least = 1e300;
  auto consider = [&](int64_t rows, int64_t cols) {
    if (q.planes == 0 && q.a.group_in * cols > 2 * room && cols > 2 * q.width) return;
    const int64_t pitch = cols + q.more_x;
    const double copy = static_cast<double>(q.planes) * static_cast<double>((rows + q.more_y) * pitch);
    const int64_t vectors = ceil_div<int64_t>((rows - 1) * pitch + cols, 16);
    const int64_t blocks = outer * ceil_div(height, rows) * ceil_div(length, cols);
    for (int64_t splits = 1; splits <= q.a.panels; splits *= 2) {
      const double panels = static_cast<double>(ceil_div(q.a.panels, splits) * q.a.rows);
      // Copies beyond the cache are read from the next one, again for each panel.
      const double slow = copy > 4.0 * static_cast<double>(room)   ? 1.3
                          : copy > 2.0 * static_cast<double>(room) ? 1.04
                                                                   : 1;
      const double item = copy * (3.0 / 16) +
                          static_cast<double>(vectors) * panels * (static_cast<double>(q.a.k) * slow + 12) +
                          200;
      const int64_t items = blocks * splits;
      // Pieces of the pool hold several items; the last ones are shared badly.
      const double turns = q.threads == 1
                               ? static_cast<double>(items)
                               : static_cast<double>(items) / q.threads + (items % q.threads ? 0.5 : 0) +
                                     (items < 4 * q.threads ? 0.15 : 0);
      // Threads without positions of their own read what all the others wrote.
      const double far = blocks < q.threads && blocks < height * length ? 1.15 : 1;
      const double time = std::max(turns, 1.0) * item * far;
      if (time < least * 0.999) {
        least = time;
        best = {rows, cols, splits};
      }
      if (q.threads == 1 || q.per_channel) break;
    }
  };
  for (int64_t blocks = q.row_blocks, last = 0; blocks <= height && blocks <= kMostRowBlocks; blocks++) {
    const int64_t rows = ceil_div(height, blocks);
    if (rows == last) continue;
    last = rows;
    if (static_cast<double>(q.planes) * static_cast<double>((rows + q.more_y) * (length + q.more_x)) <
        8.0 * static_cast<double>(room))
      consider(rows, length);
  }
  for (int64_t tiles = 1; tiles <= 256; tiles = tiles < 8 ? tiles + 1 : tiles * 2)
    if (tiles * q.width < length) consider(1, tiles * q.width);
  return best;
}

}  // namespace

void plan_blocks(ConvPlan* plan, int max_rows, int vectors, int threads, const PlanOptions& options) {
  const bool per_channel = options.per_channel;
  ConvArgs& a = plan->args;
  bool plain = !options.keep_rows;
  for (const ConvAxis& x : a.axes)
    plain = plain && x.kernel == 1 && x.stride == 1 && x.begin == 0 && x.in == x.out;
  if (plain) {
    const int64_t n = a.axes[0].in * a.axes[1].in * a.axes[2].in;
    a.axes[0] = a.axes[1] = {};
    a.axes[2].in = a.axes[2].out = n;
  }
  const ConvAxis &d = a.axes[0], &h = a.axes[1], &w = a.axes[2];
  ConvBlocks& b = a.blocks;
  b.direct = plain && !per_channel && static_cast<double>(a.group_in) * static_cast<double>(w.in) < 2e9;
  const int64_t more_y = phases_of(h, &plan->phase_y), more_x = phases_of(w, &plan->phase_x);
  b.phases_y = static_cast<int64_t>(plan->phase_y.size());
  b.phases_x = static_cast<int64_t>(plan->phase_x.size());
  const int64_t channels = per_channel ? 1 : a.group_in;
  const int64_t planes = std::max<int64_t>(1, channels * d.kernel * b.phases_y * b.phases_x);
  a.k = channels * d.kernel * h.kernel * w.kernel;
  a.panels = ceil_div<int64_t>(a.group_out, max_rows);
  a.rows = a.panels ? static_cast<int>(ceil_div(a.group_out, a.panels)) : 1;

  const Cut cut = options.rows > 0
                      ? Cut{options.rows, options.cols, 1}
                      : best_cut({a, b.direct ? 0 : planes, more_y, more_x, 16 * int64_t{vectors}, threads,
                                  per_channel, std::clamp<int64_t>(options.row_blocks, 1, kMostRowBlocks)});
  b.rows = cut.rows;
  b.cols = cut.cols;
  a.splits = cut.splits;
  b.row_blocks = ceil_div(std::max<int64_t>(h.out, 1), b.rows);
  b.col_blocks = ceil_div(std::max<int64_t>(w.out, 1), b.cols);

  b.pitch = b.cols + more_x;
  b.plane_rows = b.rows + more_y;
  b.plane = b.pitch * b.plane_rows;
  b.floats = planes * b.plane + more_x + 16 * vectors + 64;
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
  if (b.direct) {
    b.floats = channels * 16 * vectors;
    plan->offsets.clear();
    plan->tail_offsets.clear();
    for (int64_t c = 0; c < channels; c++) {
      plan->offsets.push_back(static_cast<int32_t>(c * w.in));
      plan->tail_offsets.push_back(static_cast<int32_t>(c * 16 * vectors));
    }
    b.tail_offsets = plan->tail_offsets.data();
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
