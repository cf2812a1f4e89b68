// SPDX-License-Identifier: Apache-2.0
// The padded, stride-split copy of the inputs of a block of outputs: conv.h, ConvBlocks.
#pragma once

#include "ops/conv/conv.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE int64_t low(int64_t a, int64_t b) { return a < b ? a : b; }
CYB_INLINE int64_t high(int64_t a, int64_t b) { return a > b ? a : b; }

CYB_INLINE void fill_run(float* to, int64_t n, float value) {
  const Vec v = set1(value);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(to + i, v);
  if (i < n) store_first(to + i, v, n - i);
}

CYB_INLINE void copy_run(const float* from, float* to, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(to + i, load(from + i));
  if (i < n) store_first(to + i, load_first(from + i, n - i), n - i);
}

// The 32 floats of a row from `at` on, `fill` beyond its end, which is reached.
CYB_INLINE void load_split(const float* row, int64_t length, int64_t at, float fill, Vec* even, Vec* odd) {
  const int64_t left = length - at;
  if (left >= 32)
    split_pairs(load(row + at), load(row + at + 16), even, odd);
  else
    split_pairs(load_first(row + at, high(left, 0), fill),
                left > 16 ? load_first(row + at + 16, left - 16, fill) : set1(fill), even, odd);
}

// to[j] = row[first + j · stride] for j < n, `fill` where that is outside [0, length).
static void copy_strided(const float* row, int64_t length, int64_t first, int64_t stride, int64_t n,
                         float* to, float fill) {
  int64_t begin = first < 0 ? low((-first + stride - 1) / stride, n) : 0;
  const int64_t end = first >= length ? begin : high(begin, low(n, (length - 1 - first) / stride + 1));
  fill_run(to, begin, fill);
  if (stride == 1) {
    copy_run(row + first + begin, to + begin, end - begin);
  } else if (stride == 2) {
    for (; begin < end; begin += 16) {
      Vec even, odd;
      load_split(row, length, first + 2 * begin, fill, &even, &odd);
      store_first(to + begin, even, end - begin);
    }
  } else {
    for (; begin < end; ++begin) to[begin] = row[first + begin * stride];
  }
  fill_run(to + end, n - end, fill);
}

// Both remainders of a stride of 2 in one pass: phases `first` and `first` + 1.
static void copy_pairs(const float* row, int64_t length, int64_t first, int64_t n, float* even, float* odd,
                       float fill) {
  int64_t begin = first < 0 ? low((-first + 1) / 2, n) : 0;
  for (int64_t j = 0; j < begin; ++j) {
    const int64_t i = first + 2 * j;
    even[j] = i >= 0 && i < length ? row[i] : fill;
    odd[j] = i + 1 >= 0 && i + 1 < length ? row[i + 1] : fill;
  }
  for (; begin < n; begin += 16) {
    Vec a, b;
    load_split(row, length, first + 2 * begin, fill, &a, &b);
    store_first(even + begin, a, n - begin);
    store_first(odd + begin, b, n - begin);
  }
}

// The inputs of outputs [oy, oy + rows) × [ox, ox + cols) at depth od, for `channels` planes from x on.
static void copy_block(const ConvAxis* axes, const ConvBlocks& b, const float* x, int64_t channels,
                       int64_t od, int64_t oy, int64_t rows, int64_t ox, int64_t cols, float fill,
                       float* to) {
  const ConvAxis &d = axes[0], &h = axes[1], &w = axes[2];
  const int64_t image = d.in * h.in * w.in;
  const int64_t n_rows = rows + b.plane_rows - b.rows, n = cols + b.pitch - b.cols;
  const bool pairs = w.stride == 2 && b.phases_x == 2;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t kd = 0; kd < d.kernel; ++kd) {
      const int64_t id = od * d.stride + kd * d.dilation - d.begin;
      for (int64_t py = 0; py < b.phases_y; ++py, to += b.phases_x * b.plane)
        for (int64_t r = 0; r < n_rows; ++r) {
          const int64_t iy = (oy + r) * h.stride + b.phase_y[py] - h.begin;
          float* row = to + r * b.pitch;
          if (id < 0 || id >= d.in || iy < 0 || iy >= h.in) {
            for (int64_t px = 0; px < b.phases_x; ++px) fill_run(row + px * b.plane, n, fill);
            continue;
          }
          const float* from = x + c * image + (id * h.in + iy) * w.in;
          const int64_t first = ox * w.stride - w.begin;
          if (pairs) {
            copy_pairs(from, w.in, first, n, row, row + b.plane, fill);
            continue;
          }
          for (int64_t px = 0; px < b.phases_x; ++px)
            copy_strided(from, w.in, first + b.phase_x[px], w.stride, n, row + px * b.plane, fill);
        }
    }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
