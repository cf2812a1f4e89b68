// SPDX-License-Identifier: Apache-2.0
// pool.h on sixteen lanes, over the padded copy that convolutions use.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/pool/pool.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// The larger; a NaN of either side stays.
CYB_INLINE Vec larger(Vec a, Vec b) { return if_equal(a, a, max_or_second(a, b), a); }

static void pool(const PoolArgs& args, int64_t begin, int64_t end, float* copy) {
  const ConvBlocks& b = args.blocks;
  const ConvAxis &d = args.axes[0], &h = args.axes[1], &w = args.axes[2];
  const int64_t in_image = d.in * h.in * w.in;
  const float none = -__builtin_inff();
  // Maxima go first down the rows, to `down` for each remainder along the width, then along them. All rows of
  // a block are one run of floats, with some between them that do not count.
  const int64_t rows_taps = d.kernel * h.kernel, stretch = (b.rows * b.pitch + 31) / 16 * 16;
  float* down = copy + (b.floats + 15) / 16 * 16;
  float* flat = down + b.phases_x * stretch;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t channel = item % args.channels;
    int64_t rest = item / args.channels;
    const int64_t cb = rest % b.col_blocks;
    rest /= b.col_blocks;
    const int64_t rb = rest % b.row_blocks;
    rest /= b.row_blocks;
    const int64_t od = rest % d.out, plane = rest / d.out * args.channels + channel;
    const int64_t oy = rb * b.rows, ox = cb * b.cols;
    const int64_t rows = low(b.rows, h.out - oy), cols = low(b.cols, w.out - ox);
    copy_block(args.axes, b, args.x + plane * in_image, 1, od, oy, rows, ox, cols, args.average ? 0.0f : none,
               copy);
    const int64_t n = (rows - 1) * b.pitch + cols;
    if (args.average) {
      for (int64_t j = 0; j < n; j += 16) {
        Vec sum = set1(0.0f);
        for (int64_t k = 0; k < args.taps; ++k) sum = sum + load(copy + b.offsets[k] + j);
        store(flat + j, sum);
      }
    } else {
      // The first tap of each row of taps is that of remainder 0.
      for (int64_t px = 0; px < b.phases_x; ++px)
        for (int64_t j = 0; j < rows * b.pitch; j += 16) {
          const float* from = copy + px * b.plane + j;
          Vec top = load(from);
          for (int64_t k = 1; k < rows_taps; ++k) top = larger(top, load(from + b.offsets[k * w.kernel]));
          store(down + px * stretch + j, top);
        }
      for (int64_t j = 0; j < n; j += 16) {
        Vec top = load(down + j);
        for (int64_t kx = 1; kx < w.kernel; ++kx) {
          const int64_t px = b.offsets[kx] / b.plane;
          top = larger(top, load(down + px * (stretch - b.plane) + b.offsets[kx] + j));
        }
        store(flat + j, top);
      }
    }
    for (int64_t r = 0; r < rows; ++r) {
      float* y = args.y + ((plane * d.out + od) * h.out + oy + r) * w.out + ox;
      if (!args.average) {
        copy_run(flat + r * b.pitch, y, cols);
        continue;
      }
      const Vec count = set1(args.counts[0][od] * args.counts[1][oy + r]), zero = set1(0.0f);
      for (int64_t j = 0; j < cols; j += 16) {
        const Vec all = count * load_first(args.counts[2] + ox + j, cols - j, 1.0f);
        store_first(y + j, if_equal(all, zero, zero, load(flat + r * b.pitch + j) / all), cols - j);
      }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
