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
// share the channels instead.
constexpr int64_t kOwnPositions = 64;

// Cuts `n` into blocks of at most `most`, if there is room as many as threads share evenly.
int64_t cuts(int64_t n, int64_t most, int64_t batch, int64_t least, int threads) {
  int64_t blocks = ceil_div(n, std::max<int64_t>(1, most));
  const int64_t unit = threads / std::gcd<int64_t>(batch, threads);
  if (n >= least * unit) blocks = round_up<int64_t>(blocks, unit);
  return std::clamp<int64_t>(blocks, 1, std::max<int64_t>(1, n));
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

  // Blocks of outputs.
  const int64_t per_position = std::max<int64_t>(1, a.in * h.stride * w.stride);
  const int64_t positions = std::max<int64_t>(16, kBlockFloats / per_position);
  a.rows = 1;
  a.row_blocks = a.out_rows;
  a.cols = a.out_cols;
  a.col_blocks = 1;
  if (a.source == Source::plain_rows) {
    ConvArgs& p = plan->plain.args;
    p.batch = a.batch;
    p.group_in = a.in;
    p.group_out = a.out;
    for (int i = 0; i < 3; i++) p.axes[i] = a.axes[i];
    // Few rows are copied again and again for the taps above and below; one may be too long.
    const int64_t row_floats = std::max<int64_t>(1, a.in * h.stride * w.in);
    const int64_t blocks =
        cuts(h.out, kBlockFloats / 2 / row_floats, a.batch, ceil_div(kOwnPositions, w.out), threads);
    plan_blocks(&plan->plain, 16, 2, threads,
                {.keep_rows = true, .rows = row_floats < kBlockFloats ? ceil_div(h.out, blocks) : 0});
    a.blocks = p.blocks;
    a.rows = a.blocks.rows;
    a.cols = a.blocks.cols;
    a.row_blocks = a.blocks.row_blocks;
    a.col_blocks = a.blocks.col_blocks;
  } else if (flat) {
    a.col_blocks = cuts(a.out_cols, positions, a.batch, kOwnPositions, threads);
    a.cols = ceil_div(a.out_cols, a.col_blocks);
    a.col_blocks = ceil_div(a.out_cols, std::max<int64_t>(1, a.cols));
  } else {
    a.row_blocks = cuts(a.out_rows, positions / std::max<int64_t>(1, w.out), a.batch,
                        ceil_div(kOwnPositions, w.out), threads);
    a.rows = ceil_div(a.out_rows, a.row_blocks);
    a.row_blocks = ceil_div(a.out_rows, a.rows);
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
        a.copy_cols = (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1;
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

  // Cuts of the channels, where threads would be left without work.
  const int64_t blocks = a.batch * a.row_blocks * a.col_blocks;
  a.vectors = vectors;
  while (a.vectors > 1 && blocks * a.channel_blocks() < threads) a.vectors /= 2;
  a.splits = 1;
  if (threads > 1 && blocks < 4 * threads && blocks % threads != 0)
    a.splits = std::clamp<int64_t>(ceil_div<int64_t>(4 * threads, std::max<int64_t>(1, blocks)), 1,
                                   std::max<int64_t>(1, a.channel_blocks()));
}

void nchw16c_pack(const Nchw16cArgs& a, const float* w, float* packed) {
  for (int64_t b = 0; b < a.channel_blocks(); b++) {
    const GroupBlock g = group_block(a.groups(), a.vectors, b);
    for (int64_t k = 0; k < a.k; k++)
      for (int64_t c = 16 * g.first; c < 16 * (g.first + g.count); c++)
        *packed++ = c < a.out ? w[c * a.k + k] : 0.0f;
  }
}

}  // namespace cyb
