// SPDX-License-Identifier: Apache-2.0
// From raw scores of a page to the weights of its values, for the rows of some tiles at once.
#pragma once

#include "ops/attention/kernels.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr float kHidden = -__builtin_inff();

// What row r's raw scores of a page become with `shaped`, in place, N · 16 of them: scale, soft-cap, biases,
// segments.
template <int N>
static __attribute__((noinline)) void shape_logits(const AttendBlock& a, int32_t r, int32_t start,
                                                   float* scores) {
  Vec s[N];
  const Vec scale = set1(a.scale);
  CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = load(scores + 16 * j) * scale;
  if (a.soft_cap != 0.0f) {
    const Vec cap = set1(a.soft_cap);
    CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = soft_cap(s[j], cap);
  }
  const int32_t apart = start - a.position[r];  // j - i of the page's first key
  if (a.slope) {
    const Vec slope = set1(a.slope[r]);
    CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = s[j] - slope * distance(apart + 16 * j);
  }
  if (a.relative) {
    // Beyond the reach all values are equal, so that a page far away reads the end of the table.
    const int32_t reach = a.relative_reach;
    const int32_t at = apart < -reach - 64 ? -reach - 64 : apart > reach + 1 ? reach + 1 : apart;
    CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = s[j] + load(a.relative[r] + at + 16 * j);
  }
  if (a.bias && a.bias[r]) {
    const float* bias = a.bias[r] + start;
    CYB_UNROLL for (int j = 0; j < N; ++j) {
      const int64_t left = a.bias_columns - start - 16 * j;
      if (left > 0) s[j] = s[j] + load_first(bias + 16 * j, left);
    }
  }
  CYB_UNROLL for (int j = 0; j < N; ++j) store(scores + 16 * j, s[j]);
  if (a.query_segment) {
    const int64_t n = a.segment_columns - start < 16 * N ? a.segment_columns - start : 16 * N;
    for (int64_t j = 0; j < n; ++j)
      if (a.key_segment[r][start + j] != a.query_segment[r]) scores[j] = kHidden;
  }
}

// What softmax sees of row r, also in place.
template <int N>
CYB_INLINE void row_logits(const AttendBlock& a, int32_t r, int32_t start, float* scores, Vec* s) {
  if (a.shaped) shape_logits<N>(a, r, start, scores);
  CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = load(scores + 16 * j);
  const int32_t from = a.from[r] - start, to = a.to[r] - start;
  if (from > 0 || to < 16 * N) CYB_UNROLL for (int j = 0; j < N; ++j) {
      s[j] = keep_range(s[j], from - 16 * j, to - 16 * j);
      store(scores + 16 * j, s[j]);
    }
}

// The sum of N blocks as four of which the rest are zeros.
template <int N>
CYB_INLINE Vec sum_blocks(const Vec* s) {
  Vec all[4];
  CYB_UNROLL for (int j = 0; j < 4; ++j) all[j] = j < N ? s[j] : set1(0.0f);
  return (all[0] + all[1]) + (all[2] + all[3]);
}

// Tiles whose rows go through softmax together: its chains of steps are long, and more rows fill them.
inline constexpr int kTilesAtOnce = 2;
inline constexpr int kRowsAtOnce = kTilesAtOnce * kAttendTile;
static_assert(kRowsAtOnce <= 16);

CYB_INLINE Vec max_rows(const float* rows, int32_t count) {
  const Vec low = max_rows8(rows);
  return count <= 8 ? low : join8(low, max_rows8(rows + 8 * 16));
}
CYB_INLINE Vec add_rows(const float* rows, int32_t count) {
  const Vec low = add_rows8(rows);
  return count <= 8 ? low : join8(low, add_rows8(rows + 8 * 16));
}

// Turns the raw scores of some rows into 2^((s - max)·factor) in place, and their running values with them;
// alpha[r] is the factor that what was summed so far takes. Positions beyond N · 16 would be hidden ones:
// they add exact zeros.
template <int N>
static __attribute__((noinline)) void rows_softmax(const AttendBlock& a, int32_t first, int32_t rows,
                                                   int32_t start, float* scores, float* alpha) {
  alignas(64) float folds[16 * 16];  // a row's sixteen maxima, then sums
  for (int32_t r = rows; r % 8 != 0; ++r) store(folds + r * 16, set1(0.0f));
  alignas(64) float top[16];
  for (int32_t r = 0; r < rows; ++r) {
    Vec s[N];
    row_logits<N>(a, first + r, start, scores + r * 64, s);
    Vec most = s[0];
    CYB_UNROLL for (int j = 1; j < N; ++j) most = vmax(most, s[j]);
    store(folds + r * 16, most);
  }
  const Vec factor = set1(a.factor);
  // Of all rows at once.
  const Vec old = load_first(a.max + first, rows), page = max_rows(folds, rows);
  const Vec now = if_less(old, page, page, old);
  const Vec shrink = if_equal(now, old, set1(1.0f), exp2_negative((old - now) * factor));
  store(top, now);
  store(alpha, shrink);
  store_first(a.max + first, now, rows);
  for (int32_t r = 0; r < rows; ++r) {
    Vec s[N];
    CYB_UNROLL for (int j = 0; j < N; ++j) s[j] = load(scores + r * 64 + 16 * j);
    if (top[r] - top[r] != 0.0f) {
      // Nothing seen, or NaN and infinities, which have to reach the result.
      const float all = top[r] == kHidden ? reduce_add(sum_blocks<N>(s)) : __builtin_nanf("");
      const Vec p = set1(all == all ? 0.0f : all);
      CYB_UNROLL for (int j = 0; j < N; ++j) store(scores + r * 64 + 16 * j, p);
      store(folds + r * 16, p);
      continue;
    }
    const Vec most = set1(top[r]);
    CYB_UNROLL for (int j = 0; j < N; ++j) {
      s[j] = exp2_negative((s[j] - most) * factor);
      store(scores + r * 64 + 16 * j, s[j]);
    }
    store(folds + r * 16, sum_blocks<N>(s));
  }
  store_first(a.sum + first, fma(load_first(a.sum + first, rows), shrink, add_rows(folds, rows)), rows);
}

static __attribute__((noinline)) float exp2_one(float x) {
  alignas(64) float lanes[16];
  store(lanes, exp2_negative(set1(x)));
  return lanes[0];
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
