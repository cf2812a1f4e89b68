// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/nchw16c_plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace cyb {
namespace {

// What a block of outputs reads stays in a second-level cache while all channels are computed from it.
constexpr int64_t kBlockFloats = 64 << 10;
// Of fewer positions than this for each thread, the weights take longer to come than to multiply: threads
// share the channels instead, if there are enough; else positions down to the second figure.
constexpr int64_t kOwnPositions = 64, kFewPositions = 16;

// A cut of n into blocks of at most `most`; as many as a multiple of `unit`, where they may be.
int64_t cut(int64_t n, int64_t most, int64_t unit) {
  return std::clamp<int64_t>(round_up<int64_t>(ceil_div(n, std::max<int64_t>(1, most)), unit), 1, n);
}

// Blocks of whole rows, or of parts of one row, that read at most kBlockFloats; where threads have `own`
// positions each, as many blocks as they share evenly.
void cut_positions(Nchw16cArgs& a, int64_t own, int threads) {
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  const auto reach = [](const ConvAxis& x, int64_t outputs) {
    return (outputs - 1) * x.stride + (x.kernel - 1) * x.dilation + 1;
  };
  const bool flat = a.out_cols != w.out;
  const auto reads = [&](int64_t rows, int64_t cols) {
    return static_cast<double>(a.in) *
           (flat ? static_cast<double>(cols)
                 : static_cast<double>(reach(h, rows)) * static_cast<double>(reach(w, cols)));
  };
  const auto most = [&](int64_t n, auto&& floats) {  // by halves
    while (n > 1 && floats(n) > static_cast<double>(kBlockFloats)) n = ceil_div<int64_t>(n, 2);
    return n;
  };
  const int64_t positions = a.out_rows * a.out_cols;
  int64_t unit = threads / std::gcd<int64_t>(a.batch, threads);
  if (positions < own * unit) unit = own > kFewPositions ? 1 : std::max<int64_t>(1, positions / own);
  const int64_t rows = most(a.out_rows, [&](int64_t n) { return reads(n, a.out_cols); });
  int64_t cols = a.out_cols;
  if (rows == 1) cols = most(cols, [&](int64_t n) { return n <= kFewPositions ? 0.0 : reads(1, n); });
  // Rows are shared out if there are enough, else parts of them.
  const bool by_rows = a.out_rows >= unit && cols == a.out_cols;
  a.row_blocks = cols < a.out_cols ? a.out_rows : cut(a.out_rows, rows, by_rows ? unit : 1);
  const int64_t parts = !by_rows ? unit / std::gcd<int64_t>(a.row_blocks, unit) : 1;
  a.col_blocks = cut(a.out_cols, cols, parts);
  a.rows = ceil_div(a.out_rows, a.row_blocks);
  a.cols = ceil_div(a.out_cols, a.col_blocks);
  a.row_blocks = ceil_div(a.out_rows, a.rows);
  a.col_blocks = ceil_div(a.out_cols, a.cols);
}

}  // namespace

void nchw16c_plan(Nchw16cPlan* plan, int vectors, int threads) {
  using Source = Nchw16cArgs::Source;
  Nchw16cArgs& a = plan->args;
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  const int64_t in_floats = a.x_blocked ? 16 : 1, in_plane = h.in * w.in * in_floats;
  const bool point = h.kernel == 1 && w.kernel == 1;
  const auto padded = [](const ConvAxis& x) {
    return x.begin != 0 || (x.out - 1) * x.stride + (x.kernel - 1) * x.dilation >= x.in;
  };
  const bool pads = padded(h) || padded(w), strides = h.stride != 1 || w.stride != 1;
  const bool flat = point && !pads && !strides;
  a.k = a.in * h.kernel * w.kernel;
  a.out_rows = flat ? 1 : h.out;
  a.out_cols = flat ? h.out * w.out : w.out;
  // Positions of planes lie far apart, in lines that would be read in part again and again.
  const bool copied = point && (a.x_blocked ? strides : !strides && a.in % 16 == 0);
  a.source = pads     ? (a.x_blocked ? Source::rows : Source::plain_rows)
             : copied ? Source::positions
                      : Source::in_place;

  // Blocks of outputs: smaller ones, and of fewer channels, where threads would be left without work.
  for (int64_t own = kOwnPositions;; own /= 2) {
    cut_positions(a, own, threads);
    if (a.source == Source::plain_rows) {
      ConvArgs& p = plan->plain.args;
      p.batch = a.batch;
      p.group_in = a.in;
      p.group_out = a.out;
      for (int i = 0; i < 3; i++) p.axes[i] = a.axes[i];
      plan_blocks(&plan->plain, 16, 2, threads, {.keep_rows = true, .rows = a.rows, .cols = a.cols});
      a.blocks = p.blocks;
    }
    const int64_t blocks = a.batch * a.row_blocks * a.col_blocks;
    a.vectors = vectors;
    while (a.vectors > 1 && (a.vectors > a.groups() || blocks * a.channel_blocks() < threads)) a.vectors /= 2;
    a.splits = 1;
    if (threads > 1 && blocks < 4 * threads && blocks % threads != 0)
      a.splits = std::clamp<int64_t>(ceil_div<int64_t>(4 * threads, std::max<int64_t>(1, blocks)), 1,
                                     std::max<int64_t>(1, a.channel_blocks()));
    if (a.items() >= threads || own <= kFewPositions) break;
  }

  // Where tiles read.
  plan->offsets.clear();
  a.offsets = nullptr;
  switch (a.source) {
    case Source::in_place:
    case Source::rows: {
      int64_t row = w.in, plane = in_plane;
      if (a.source == Source::rows) {
        a.copy_rows = (a.rows - 1) * h.stride + (h.kernel - 1) * h.dilation + 1;
        a.copy_cols = (a.cols - 1) * w.stride + (w.kernel - 1) * w.dilation + 1;
        a.floats = a.in * a.copy_rows * a.copy_cols;
        row = a.copy_cols;
        plane = a.copy_rows * a.copy_cols * 16;
      }
      a.plane = plane;
      a.step = w.stride * in_floats;
      a.row_step = h.stride * row * in_floats;
      if (a.x_blocked && flat) break;
      for (int64_t c = 0; c < a.in; c++)
        for (int64_t y = 0; y < h.kernel; y++)
          for (int64_t x = 0; x < w.kernel; x++)
            plan->offsets.push_back(c / in_floats * plane + c % in_floats +
                                    (y * h.dilation * row + x * w.dilation) * in_floats);
      break;
    }
    case Source::positions:
      a.floats = a.in * a.rows * a.cols;
      a.step = 16;
      break;
    case Source::plain_rows:
      a.floats = a.blocks.floats;
      a.step = 1;
      a.row_step = a.blocks.pitch;
      plan->offsets.assign(plan->plain.offsets.begin(), plan->plain.offsets.end());
      break;
  }
  if (!plan->offsets.empty()) a.offsets = plan->offsets.data();
}

void pack_lanes(int64_t out, int64_t k, int vectors, const float* w, float* packed) {
  const int64_t groups = ceil_div<int64_t>(out, 16);
  for (int64_t b = 0; b < group_blocks(groups, vectors); b++) {
    const GroupBlock g = group_block(groups, vectors, b);
    for (int64_t tap = 0; tap < k; tap++)
      for (int64_t c = 16 * g.first; c < 16 * (g.first + g.count); c++)
        *packed++ = c < out ? w[c * k + tap] : 0.0f;
  }
}

}  // namespace cyb
