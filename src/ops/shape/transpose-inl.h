// SPDX-License-Identifier: Apache-2.0
// transpose.h by tiles in vector registers: 8 by 8, or 4 by 4 where vectors are short.
#pragma once

#include "ops/shape/transpose.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

static void transpose_plain(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows,
                            int64_t columns) {
  for (int64_t t = 0; t < columns; ++t)
    for (int64_t i = 0; i < rows; ++i) y[t * y_stride + i] = x[i * x_stride + t];
}

#ifdef CYB_SIMD_TARGET
using TileLanes = hn::CappedTag<uint32_t, 8>;
inline constexpr int64_t kTileSide = static_cast<int64_t>(hn::MaxLanes(TileLanes()));

CYB_INLINE void tile(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride) {
  const TileLanes d;
  const hn::RepartitionToWide<TileLanes> wide;
  using V = hn::Vec<TileLanes>;
  V four[kTileSide];  // for each group of four rows: columns of four, two of them a vector where it is long
  CYB_UNROLL for (int64_t g = 0; g < kTileSide; g += 4) {
    const V a = hn::LoadU(d, x + g * x_stride), b = hn::LoadU(d, x + (g + 1) * x_stride);
    const V c = hn::LoadU(d, x + (g + 2) * x_stride), e = hn::LoadU(d, x + (g + 3) * x_stride);
    const auto ab0 = hn::BitCast(wide, hn::InterleaveLower(d, a, b)),
               ab1 = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
    const auto ce0 = hn::BitCast(wide, hn::InterleaveLower(d, c, e)),
               ce1 = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
    four[g] = hn::BitCast(d, hn::InterleaveLower(wide, ab0, ce0));
    four[g + 1] = hn::BitCast(d, hn::InterleaveUpper(wide, ab0, ce0));
    four[g + 2] = hn::BitCast(d, hn::InterleaveLower(wide, ab1, ce1));
    four[g + 3] = hn::BitCast(d, hn::InterleaveUpper(wide, ab1, ce1));
  }
  if constexpr (kTileSide == 8) {
    CYB_UNROLL for (int64_t k = 0; k < 4; ++k) {
      hn::StoreU(hn::ConcatLowerLower(d, four[(k + 4) % kTileSide], four[k]), d, y + k * y_stride);
      hn::StoreU(hn::ConcatUpperUpper(d, four[(k + 4) % kTileSide], four[k]), d, y + (k + 4) * y_stride);
    }
  } else {
    CYB_UNROLL for (int64_t k = 0; k < kTileSide; ++k) hn::StoreU(four[k], d, y + k * y_stride);
  }
}

// Two to four channels apart: pixels into planes, and planes into pixels. Returns how many pixels were done.
static int64_t planes_of_pixels(const uint32_t* x, uint32_t* y, int64_t y_stride, int64_t pixels,
                                int64_t channels) {
  const TileLanes d;
  hn::Vec<TileLanes> a, b, c, e;
  int64_t i = 0;
  for (; i + kTileSide <= pixels; i += kTileSide) {
    if (channels == 2) {
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
    } else if (channels == 3) {
      hn::LoadInterleaved3(d, x + 3 * i, a, b, c);
      hn::StoreU(c, d, y + 2 * y_stride + i);
    } else {
      hn::LoadInterleaved4(d, x + 4 * i, a, b, c, e);
      hn::StoreU(c, d, y + 2 * y_stride + i);
      hn::StoreU(e, d, y + 3 * y_stride + i);
    }
    hn::StoreU(a, d, y + i);
    hn::StoreU(b, d, y + y_stride + i);
  }
  return i;
}
static int64_t pixels_of_planes(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t pixels,
                                int64_t channels) {
  const TileLanes d;
  int64_t i = 0;
  for (; i + kTileSide <= pixels; i += kTileSide) {
    const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + x_stride + i);
    if (channels == 2)
      hn::StoreInterleaved2(a, b, d, y + 2 * i);
    else if (channels == 3)
      hn::StoreInterleaved3(a, b, hn::LoadU(d, x + 2 * x_stride + i), d, y + 3 * i);
    else
      hn::StoreInterleaved4(a, b, hn::LoadU(d, x + 2 * x_stride + i), hn::LoadU(d, x + 3 * x_stride + i), d,
                            y + 4 * i);
  }
  return i;
}

static void transpose(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows,
                      int64_t columns) {
  if (columns >= 2 && columns <= 4 && x_stride == columns) {
    const int64_t done = planes_of_pixels(x, y, y_stride, rows, columns);
    return transpose_plain(x + done * columns, x_stride, y + done, y_stride, rows - done, columns);
  }
  if (rows >= 2 && rows <= 4 && y_stride == rows) {
    const int64_t done = pixels_of_planes(x, x_stride, y, columns, rows);
    return transpose_plain(x + done, x_stride, y + done * rows, y_stride, rows, columns - done);
  }
  const int64_t whole_rows = rows / kTileSide * kTileSide, whole_columns = columns / kTileSide * kTileSide;
  for (int64_t i = 0; i < whole_rows; i += kTileSide)
    for (int64_t t = 0; t < whole_columns; t += kTileSide)
      tile(x + i * x_stride + t, x_stride, y + t * y_stride + i, y_stride);
  transpose_plain(x + whole_rows * x_stride, x_stride, y + whole_rows, y_stride, rows - whole_rows,
                  whole_columns);
  transpose_plain(x + whole_columns, x_stride, y + whole_columns * y_stride, y_stride, rows,
                  columns - whole_columns);
}
#else
static void transpose(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows,
                      int64_t columns) {
  for (int64_t i = 0; i < rows; i += 16) {
    const int64_t n = rows - i < 16 ? rows - i : 16;
    transpose_plain(x + i * x_stride, x_stride, y + i, y_stride, n, columns);
  }
}
#endif

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
