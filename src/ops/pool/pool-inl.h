// SPDX-License-Identifier: Apache-2.0
// pool.h on sixteen lanes: rows where they lie, whole planes, or the padded copy that convolutions use.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/pool/pool.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// The larger; a NaN of either side stays.
CYB_INLINE Vec larger(Vec a, Vec b) { return if_equal(a, a, max_or_second(a, b), a); }

// Averages of whole planes: lanes are planes, and what lies in order is the order of the taps.
static bool averages_planes(const PoolArgs& a) {
  bool whole = a.average;
  for (const ConvAxis& x : a.axes)
    whole = whole && x.out == 1 && x.kernel == x.in && x.begin == 0 && x.dilation == 1;
  return whole;
}

static void average_planes(const PoolArgs& a, int64_t begin, int64_t end) {
  alignas(64) float part[16 * 16], lines[16 * 16];
  const int64_t n = a.axes[0].in * a.axes[1].in * a.axes[2].in;
  const Vec all = set1(a.counts[0][0] * a.counts[1][0]) * set1(a.counts[2][0]), zero = set1(0.0f);
  for (int64_t i = 0; i < 16; ++i) store(lines + 16 * i, zero);
  for (int64_t plane = begin; plane < end; plane += 16) {
    const float* x = a.x + plane * n;
    const int64_t planes = low(16, end - plane);
    Vec sum = zero;
    for (int64_t j = 0; j < n; j += 16) {
      const int64_t taps = low(16, n - j);
      if (planes == 16 && taps == 16) {
        transpose16(x + j, n, part, 16);
      } else {
        for (int64_t i = 0; i < planes; ++i) store(lines + 16 * i, load_first(x + i * n + j, taps));
        transpose16(lines, 16, part, 16);
      }
      for (int64_t t = 0; t < taps; ++t) sum = sum + load(part + 16 * t);
    }
    store_first(a.y + plane, if_equal(all, zero, zero, sum / all), planes);
  }
}

// Maxima whose blocks are whole rows need no copy: down the rows of x to a line with room for the pads, then
// along it. The line takes the copy's place, which is as wide where every remainder by the stride occurs.
static bool reads_rows(const PoolArgs& a) {
  return !a.average && a.blocks.col_blocks == 1 && a.axes[2].begin >= 0 && a.axes[2].stride <= 2 &&
         a.blocks.phases_x == a.axes[2].stride;
}

// Row oy of depth od. The line is as wide as the taps reach, and 64 more.
static void max_row(const PoolArgs& a, const float* x, int64_t od, int64_t oy, float* line, float* y) {
  const ConvAxis &d = a.axes[0], &h = a.axes[1], &w = a.axes[2];
  const Vec none = set1(-__builtin_inff());
  const int64_t reach = (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - w.begin;
  const int64_t columns = low(w.in, reach);
  for (int64_t j = 0; j < columns; j += 16) {
    const int64_t left = columns - j;
    Vec top = none;
    bool any = false;
    for (int64_t kd = 0; kd < d.kernel; ++kd)
      for (int64_t ky = 0; ky < h.kernel; ++ky) {
        const int64_t id = od * d.stride + kd * d.dilation - d.begin;
        const int64_t iy = oy * h.stride + ky * h.dilation - h.begin;
        if (id < 0 || id >= d.in || iy < 0 || iy >= h.in) continue;
        const float* row = x + (id * h.in + iy) * w.in + j;
        const Vec v = left >= 16 ? load(row) : load_first(row, left);
        top = any ? larger(top, v) : v;
        any = true;
      }
    store_first(line + w.begin + j, top, left);
  }
  for (int64_t j = 0; j < w.out; j += 16) {
    Vec top = none;
    for (int64_t kx = 0; kx < w.kernel; ++kx) {
      const float* from = line + j * w.stride + kx * w.dilation;
      Vec v = load(from), odd;
      if (w.stride == 2) split_pairs(v, load(from + 16), &v, &odd);
      top = kx > 0 ? larger(top, v) : v;
    }
    store_first(y + j, top, w.out - j);
  }
}

// Of channels in blocks.
static void average_blocks(const PoolArgs& a, int64_t begin, int64_t end) {
  const int64_t n = a.axes[1].in * a.axes[2].in;
  const Vec all = set1(a.counts[0][0] * a.counts[1][0]) * set1(a.counts[2][0]), zero = set1(0.0f);
  for (int64_t block = begin; block < end; ++block) {
    const float* x = a.x + block * n * 16;
    Vec sum = zero;
    for (int64_t j = 0; j < n; ++j) sum = sum + load(x + 16 * j);
    store(a.y + block * 16, if_equal(all, zero, zero, sum / all));
  }
}

// In the order of max_row: down the rows to a line, then along it.
static void max_blocks(const PoolArgs& a, int64_t begin, int64_t end, float* line) {
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  const int64_t blocks = a.channels / 16, reach = (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1;
  const Vec none = set1(-__builtin_inff());
  for (int64_t item = begin; item < end; ++item) {
    const int64_t block = item % blocks, oy = item / blocks % h.out, image = item / blocks / h.out;
    const float* x = a.x + (image * blocks + block) * h.in * w.in * 16;
    for (int64_t j = 0; j < reach; ++j) {
      const int64_t ix = j - w.begin;
      Vec top = none;
      bool any = false;
      for (int64_t ky = 0; ky < h.kernel && ix >= 0 && ix < w.in; ++ky) {
        const int64_t iy = oy * h.stride + ky * h.dilation - h.begin;
        if (iy < 0 || iy >= h.in) continue;
        const Vec v = load(x + (iy * w.in + ix) * 16);
        top = any ? larger(top, v) : v;
        any = true;
      }
      store(line + 16 * j, top);
    }
    float* y = a.y + ((image * blocks + block) * h.out + oy) * w.out * 16;
    for (int64_t j = 0; j < w.out; ++j) {
      const float* from = line + j * w.stride * 16;
      Vec top = load(from);
      for (int64_t kx = 1; kx < w.kernel; ++kx) top = larger(top, load(from + kx * w.dilation * 16));
      store(y + 16 * j, top);
    }
  }
}

static void pool(const PoolArgs& args, int64_t begin, int64_t end, float* copy) {
  if (args.blocked)
    return args.average ? average_blocks(args, begin, end) : max_blocks(args, begin, end, copy);
  if (averages_planes(args)) return average_planes(args, begin, end);
  const ConvBlocks& b = args.blocks;
  const ConvAxis &d = args.axes[0], &h = args.axes[1], &w = args.axes[2];
  const int64_t in_image = d.in * h.in * w.in;
  const float none = -__builtin_inff();
  const bool by_rows = reads_rows(args);
  if (by_rows)  // the pads
    fill_run(copy, (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1, none);
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
    if (by_rows) {
      for (int64_t r = 0; r < rows; ++r)
        max_row(args, args.x + plane * in_image, od, oy + r, copy,
                args.y + ((plane * d.out + od) * h.out + oy + r) * w.out);
      continue;
    }
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
