// SPDX-License-Identifier: Apache-2.0
// kernels.h on sixteen lanes. Bits: a score is one FMA chain over dimensions, a value one FMA chain over
// positions of a page, sums fold in a fixed order; how rows are grouped into tiles changes nothing.
#pragma once

#include <type_traits>

#include "ops/attention/codes-inl.h"
#include "ops/attention/kernels.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr bool kPlain = kParts == 16;
inline constexpr float kHidden = -__builtin_inff();
// Softmax is computed with powers of two: logits and their maxima are multiples of ln 2.
inline constexpr float kLog2E = 1.44269504088896341f;

// How many blocks of sixteen positions (or dimensions) go beside `rows` accumulators: registers are 16 of 8
// lanes on AVX2, 32 elsewhere.
constexpr int blocks_beside(int rows) {
  if (kParts == 1) return 4;
  if (kParts == 2) return rows == 1 ? 4 : rows == 2 ? 2 : 1;
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
}

CYB_INLINE void store_one(uint16_t* p, Vec x) {
  x = if_less(set1(65504.0f), x, set1(65504.0f), x);
  x = if_less(x, set1(-65504.0f), set1(-65504.0f), x);
  store_half(p, x);
}
CYB_INLINE void store_one(float* p, Vec x) { store(p, x); }

template <class T>
static void store_page(const StorePage& a) {
  // Whole blocks of 16 floats of 16 keys are turned at once.
  int32_t turned = 0;
  const int32_t turned_dims = sizeof(T) == 4 && a.entry % kKvLanes == 0 ? a.k_dim / 16 * 16 : 0;
  if constexpr (sizeof(T) == 4)
    for (; turned_dims > 0 && turned + 16 <= a.count; turned += 16)
      for (int32_t d = 0; d < turned_dims; d += 16)
        transpose16(a.k + turned * a.k_step + d, a.k_step,
                    static_cast<T*>(a.k_page) + key_at(d, a.entry + turned, a.k_dim), kKvLanes);
  for (int32_t i = 0; i < a.count; ++i) {
    const int32_t entry = a.entry + i;
    const float* k = a.k + i * a.k_step;
    T* to_k = static_cast<T*>(a.k_page) + key_at(0, entry, a.k_dim);
    for (int32_t d = i < turned ? turned_dims : 0; d < a.k_dim; d += 16) {
      const int32_t n = a.k_dim - d < 16 ? a.k_dim - d : 16;
      alignas(64) T lanes[16];
      store_one(lanes, load_first(k + d, n));
      for (int32_t j = 0; j < n; ++j) to_k[(d + j) * kKvLanes] = lanes[j];
    }
    const float* v = a.v + i * a.v_step;
    T* to_v = static_cast<T*>(a.v_page) + int64_t{entry} * a.v_stride;
    for (int32_t d = 0; d < a.v_dim; d += 16)
      store_one(to_v + d, load_first(v + d, a.v_dim - d));  // pads with zeros
  }
}

static void store_page_q8(const StorePage& a) {
  const int32_t half = key_half(a.k_dim), v_blocks = value_blocks(a.v_stride);
  auto* k_codes = static_cast<int8_t*>(a.k_page);
  auto* v_codes = static_cast<int8_t*>(a.v_page);
  auto* k_scales = reinterpret_cast<uint16_t*>(k_codes + int64_t{a.k_dim} * 64);
  auto* v_scales = reinterpret_cast<uint16_t*>(v_codes + int64_t{a.v_stride} * 64);
  for (int32_t i = 0; i < a.count; ++i) {
    const int64_t entry = a.entry + i;
    const float* k = a.k + i * a.k_step;
    for (int32_t d = 0; d < half; d += 16) {
      const int32_t left = half - d, left2 = a.k_dim - half - d;
      encode_key(k + d, left < 16 ? left : 16, k + half + d, left2 < 16 ? left2 : 16,
                 k_codes + key_at(d, entry, a.k_dim), k_codes + key_at(half + d, entry, a.k_dim),
                 k_scales + key_at(d / kKvKeyStep, entry, key_blocks(a.k_dim)));
    }
    const float* v = a.v + i * a.v_step;
    for (int32_t d = 0, b = 0; d < a.v_dim; d += kKvBlock, ++b)
      v_scales[entry * v_blocks + b] = encode_value(v + d, a.v_dim - d < kKvBlock ? a.v_dim - d : kKvBlock,
                                                    v_codes + entry * a.v_stride + d);
  }
}

// A page's head as f32, for many rows.
static void expand_q8(const ExpandPage& a) {
  const auto* k = static_cast<const int8_t*>(a.k);
  const auto* v = static_cast<const int8_t*>(a.v);
  const auto* k_scales = reinterpret_cast<const uint16_t*>(k + int64_t{a.k_dim} * 64);
  const auto* v_scales = reinterpret_cast<const uint16_t*>(v + int64_t{a.v_stride} * 64);
  const int32_t v_blocks = value_blocks(a.v_stride);
  const int32_t k_blocks = key_blocks(a.k_dim);
  for (int32_t i = 0; i < a.count; i += kKvLanes)
    for (int32_t d = 0; d < a.k_dim;) {
      const int32_t end = key_block_end(d, a.k_dim);
      const Vec scale = load_scales(k_scales + key_at(key_block(d, a.k_dim), i, k_blocks));
      for (; d < end; ++d) store(a.k_page + key_at(d, i, a.k_dim), load16(k + key_at(d, i, a.k_dim)) * scale);
    }
  for (int32_t i = 0; i < a.count; ++i, v_scales += v_blocks)
    for (int32_t d = 0; d < a.v_stride; d += 16)
      store(a.v_page + int64_t{i} * a.v_stride + d,
            load16(v + int64_t{i} * a.v_stride + d) * set1(scale_value(v_scales[d / kKvBlock])));
}

// Asks for `kBytes` bytes of those that the next loop will read. The hardware does not see beyond a page, and
// one query leaves no time to wait.
template <int64_t kBytes>
CYB_INLINE void fetch_ahead(const FetchedBytes& next, int64_t at) {
  if (at < next.count)
    CYB_UNROLL for (int64_t i = 0; i < kBytes; i += 64) __builtin_prefetch(next.at + at + i, 0, 2);
}

template <class T>
inline constexpr bool kCoded = std::is_same_v<T, int8_t>;

// In plain C++ there are no registers to fill: rows go one by one, compiled once.
// `scales` are those of q8, else unused.
template <class T>
static __attribute__((noinline)) void plain_scores(const float* q, int32_t k_dim, const T* k,
                                                   const uint16_t* scales, float* scores) {
  for (int b = 0; b < 64; b += 16) {
    Vec acc = set1(0.0f);
    for (int32_t d = 0; d < k_dim; ++d) {
      Vec x = load16(k + key_at(d, b, k_dim));
      if constexpr (kCoded<T>)
        x = x * load_scales(scales + key_at(key_block(d, k_dim), b, key_blocks(k_dim)));
      acc = fma(set1(q[d]), x, acc);
    }
    store(scores + b, acc);
  }
}
template <class T>
static __attribute__((noinline)) void plain_values(const float* p, const T* v, const uint16_t* scales,
                                                   int32_t v_stride, int32_t begin, int32_t end, float alpha,
                                                   float* out) {
  const int32_t blocks = value_blocks(v_stride);
  for (int32_t d = 0; d < v_stride; d += 16) {
    Vec acc = load(out + d) * set1(alpha);
    for (int32_t i = begin; i < end; ++i) {
      Vec x = load16(v + int64_t{i} * v_stride + d);
      if constexpr (kCoded<T>) x = x * set1(scale_value(scales[i * blocks + d / kKvBlock]));
      acc = fma(set1(p[i]), x, acc);
    }
    store(out + d, acc);
  }
}

// `column` and `scales` are those of the first block of positions.
template <int kRows, int kBlocks, class T>
CYB_INLINE void scores_at(const float* const* q, int32_t k_dim, const T* column, const uint16_t* scales,
                          FetchedBytes next, int64_t fetched, float* scores) {
  const float* query[kRows];
  CYB_UNROLL for (int r = 0; r < kRows; ++r) query[r] = q[r];
  Vec acc[kRows][kBlocks];
  CYB_UNROLL for (int r = 0; r < kRows; ++r) CYB_UNROLL for (int j = 0; j < kBlocks; ++j) acc[r][j] =
      set1(0.0f);
  constexpr int64_t kStep = kKvLanes * kBlocks * sizeof(T);
  const int64_t block = key_at(0, kKvLanes, k_dim), scale_block = key_at(0, kKvLanes, key_blocks(k_dim));
  for (int32_t d = 0; d < k_dim;) {
    int32_t end = k_dim;
    Vec scale[kBlocks];
    if constexpr (kCoded<T>) {
      end = key_block_end(d, k_dim);
      const uint16_t* at = scales + key_at(key_block(d, k_dim), 0, 0);
      CYB_UNROLL for (int j = 0; j < kBlocks; ++j) scale[j] = load_scales(at + j * scale_block);
    }
    for (; d < end; ++d, column += kKvLanes, fetched += kStep) {
      Vec x[kBlocks];
      CYB_UNROLL for (int j = 0; j < kBlocks; ++j) {
        x[j] = load16(column + j * block);
        if constexpr (kCoded<T>) x[j] = x[j] * scale[j];
      }
      fetch_ahead<kStep>(next, fetched);
      CYB_UNROLL for (int r = 0; r < kRows; ++r) {
        const Vec w = set1(query[r][d]);
        CYB_UNROLL for (int j = 0; j < kBlocks; ++j) acc[r][j] = fma(w, x[j], acc[r][j]);
      }
    }
  }
  CYB_UNROLL for (int r = 0; r < kRows; ++r) CYB_UNROLL for (int j = 0; j < kBlocks; ++j)
      store(scores + r * 64 + j * 16, acc[r][j]);
}

// scores[r][64] = Σ_d q[r][d]·k[d][·] for one tile; only the first `columns` matter.
template <int kRows, class T>
CYB_INLINE void tile_scores(const float* const* q, int32_t k_dim, const T* k, const FetchedBytes& next,
                            int32_t columns, float* scores) {
  const auto* scales = reinterpret_cast<const uint16_t*>(k + int64_t{k_dim} * 64);
  if constexpr (kPlain) {
    for (int r = 0; r < kRows; ++r) plain_scores(q[r], k_dim, k, scales, scores + r * 64);
  } else {
    constexpr int kBlocks = blocks_beside(kRows);
    const int32_t blocks = key_blocks(k_dim);
    const auto run = [&](auto form, int32_t b) __attribute__((always_inline)) {
      scores_at<kRows, decltype(form)::value>(
          q, k_dim, k + key_at(0, b, k_dim), scales + key_at(0, b, blocks), next,
          key_at(0, b, k_dim) * static_cast<int64_t>(sizeof(T)), scores + b);
    };
    int32_t b = 0;
    for (; columns - b > 16 * (kBlocks - 1); b += 16 * kBlocks)
      run(std::integral_constant<int, kBlocks>(), b);
    if constexpr (kBlocks > 2)
      for (; columns - b > 16; b += 32) run(std::integral_constant<int, 2>(), b);
    if constexpr (kBlocks > 1)
      if (b < columns) run(std::integral_constant<int, 1>(), b);
  }
}

// `scales` are those of the page's first position, of the block that v is in.
template <int kRows, int kBlocks, class T>
CYB_INLINE void values_at(const float* p, const T* v, const uint16_t* scales, int32_t v_stride, int32_t begin,
                          int32_t end, FetchedBytes next, int64_t fetched, const float* alpha, float* out) {
  static_assert(kBlocks == 1 || kBlocks % 2 == 0);  // a step of two or four begins with a block of codes
  const int32_t blocks = value_blocks(v_stride);
  Vec acc[kRows][kBlocks];
  CYB_UNROLL for (int r = 0; r < kRows; ++r) CYB_UNROLL for (int j = 0; j < kBlocks; ++j) acc[r][j] =
      load(out + int64_t{r} * v_stride + 16 * j) * set1(alpha[r]);
  const T* row = v + int64_t{begin} * v_stride;
  const int64_t step = int64_t{v_stride} * static_cast<int64_t>(sizeof(T));
  for (int32_t i = begin; i < end; ++i, row += v_stride, fetched += step) {
    Vec x[kBlocks];
    CYB_UNROLL for (int j = 0; j < kBlocks; ++j) {
      x[j] = load16(row + 16 * j);
      if constexpr (kCoded<T>) x[j] = x[j] * set1(scale_value(scales[i * blocks + j / 2]));
    }
    fetch_ahead<16 * kBlocks * sizeof(T)>(next, fetched);
    CYB_UNROLL for (int r = 0; r < kRows; ++r) {
      const Vec w = set1(p[r * 64 + i]);
      CYB_UNROLL for (int j = 0; j < kBlocks; ++j) acc[r][j] = fma(w, x[j], acc[r][j]);
    }
  }
  CYB_UNROLL for (int r = 0; r < kRows; ++r) CYB_UNROLL for (int j = 0; j < kBlocks; ++j)
      store(out + int64_t{r} * v_stride + 16 * j, acc[r][j]);
}

// out[r] = out[r]·alpha[r] + Σ_i p[r][i]·v[i], i in [begin, end).
template <int kRows, class T>
CYB_INLINE void tile_values(const float* p, const T* v, int32_t v_stride, int32_t begin, int32_t end,
                            const FetchedBytes& next, const float* alpha, float* out) {
  const auto* scales = reinterpret_cast<const uint16_t*>(v + int64_t{v_stride} * 64);
  if constexpr (kPlain) {
    for (int r = 0; r < kRows; ++r)
      plain_values(p + r * 64, v, scales, v_stride, begin, end, alpha[r], out + int64_t{r} * v_stride);
  } else {
    constexpr int kBlocks = blocks_beside(kRows);
    const auto run = [&](auto form, int32_t d) __attribute__((always_inline)) {
      values_at<kRows, decltype(form)::value>(
          p, v + d, scales + d / kKvBlock, v_stride, begin, end, next,
          (int64_t{begin} * v_stride + d) * static_cast<int64_t>(sizeof(T)), alpha, out + d);
    };
    int32_t d = 0;
    for (; d + 16 * kBlocks <= v_stride; d += 16 * kBlocks) run(std::integral_constant<int, kBlocks>(), d);
    if constexpr (kBlocks > 2)
      for (; d + 32 <= v_stride; d += 32) run(std::integral_constant<int, 2>(), d);
    if constexpr (kBlocks > 1)
      for (; d < v_stride; d += 16) run(std::integral_constant<int, 1>(), d);
  }
}

// Whether raw scores become logits by more than a positive factor and a range.
CYB_INLINE bool shaped(const AttendBlock& a) {
  return a.soft_cap != 0.0f || a.slope || a.relative || a.bias || a.query_segment || !(a.scale > 0.0f);
}

// Then what row r's raw scores of a page become, in place, N · 16 of them: scale, soft-cap, biases, segments.
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
  const Vec log2e = set1(kLog2E);
  CYB_UNROLL for (int j = 0; j < N; ++j) store(scores + 16 * j, s[j] * log2e);
  if (a.query_segment) {
    const int64_t n = a.segment_columns - start < 16 * N ? a.segment_columns - start : 16 * N;
    for (int64_t j = 0; j < n; ++j)
      if (a.key_segment[r][start + j] != a.query_segment[r]) scores[j] = kHidden;
  }
}

// What is left to multiply row_logits() with: the largest of them is that of the products too, and the
// products are rounded once, with their difference from the largest.
CYB_INLINE float logit_factor(const AttendBlock& a) { return shaped(a) ? 1.0f : a.scale * kLog2E; }

// What row r's raw scores become before softmax, in place, up to logit_factor().
template <int N>
CYB_INLINE void row_logits(const AttendBlock& a, int32_t r, int32_t start, float* scores, Vec* s) {
  if (shaped(a)) shape_logits<N>(a, r, start, scores);
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

// Turns the raw scores of some rows into 2^(s - max) in place, and their running values with them; alpha[r]
// is the factor that what was summed so far takes. Positions beyond N · 16 would be hidden ones: they add
// exact zeros.
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
  const Vec scale = set1(logit_factor(a));
  // Of all rows at once.
  const Vec old = load_first(a.max + first, rows), page = max_rows(folds, rows) * scale;
  const Vec now = if_less(old, page, page, old);
  const Vec factor = if_equal(now, old, set1(1.0f), exp2_negative(old - now));
  store(top, now);
  store(alpha, factor);
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
    const Vec most = set1(-top[r]);
    CYB_UNROLL for (int j = 0; j < N; ++j) {
      s[j] = exp2_negative(fma(s[j], scale, most));
      store(scores + r * 64 + 16 * j, s[j]);
    }
    store(folds + r * 16, sum_blocks<N>(s));
  }
  store_first(a.sum + first, fma(load_first(a.sum + first, rows), factor, add_rows(folds, rows)), rows);
}

static __attribute__((noinline)) float exp2_one(float x) {
  alignas(64) float lanes[16];
  store(lanes, exp2_negative(set1(x)));
  return lanes[0];
}

// Rows [first, first + rows) of a block, and which positions of the page some of them sees.
struct Tile {
  int32_t first, rows;
  int32_t begin, end;  // the rest would add exact zeros
  int32_t columns;     // whose scores matter
};

CYB_INLINE bool sees(const AttendBlock& a, const AttendPage& page, Tile& t) {
  t.begin = page.count, t.end = 0, t.columns = 1;
  for (int32_t r = t.first; r < t.first + t.rows; ++r) {
    const int32_t from = a.from[r] - page.start, to = a.to[r] - page.start;
    if (from >= page.count || to <= 0 || from >= to) continue;
    t.begin = from < t.begin ? from : t.begin;
    t.end = to > t.end ? to : t.end;
    t.columns = to > t.columns ? to : t.columns;
  }
  t.begin = t.begin < 0 ? 0 : t.begin;
  t.end = t.end > page.count ? page.count : t.end;
  t.columns = t.columns > 64 ? 64 : t.columns;
  return t.begin < t.end;
}

template <int kRows, class T>
static void score_tile(const AttendBlock& a, const Tile& t, const AttendPage& page, float* scores) {
  FetchedBytes values;  // once is enough
  if (page.far && t.first == 0)
    values = {static_cast<const uint8_t*>(page.v),
              int64_t{page.count} * a.v_stride * static_cast<int64_t>(sizeof(T))};
  tile_scores<kRows>(a.q + t.first, a.k_dim, static_cast<const T*>(page.k), values, t.columns, scores);
}
template <int kRows, class T>
static void value_tile(const AttendBlock& a, const Tile& t, const AttendPage& page, const float* scores,
                       const float* alpha) {
  tile_values<kRows>(scores, static_cast<const T*>(page.v), a.v_stride, t.begin, t.end,
                     t.first == 0 ? page.next : FetchedBytes{}, alpha, a.out + int64_t{t.first} * a.v_stride);
}

template <class T>
static void attend_page(const AttendBlock& a, const AttendPage& page) {
  using Score = void (*)(const AttendBlock&, const Tile&, const AttendPage&, float*);
  using Value = void (*)(const AttendBlock&, const Tile&, const AttendPage&, const float*, const float*);
  static constexpr Score kScore[kAttendTile] = {score_tile<1, T>, score_tile<2, T>, score_tile<3, T>,
                                                score_tile<4, T>, score_tile<5, T>, score_tile<6, T>};
  static constexpr Value kValue[kAttendTile] = {value_tile<1, T>, value_tile<2, T>, value_tile<3, T>,
                                                value_tile<4, T>, value_tile<5, T>, value_tile<6, T>};
  alignas(64) float scores[kRowsAtOnce * 64], alpha[16];
  const int32_t width = tile_rows(a.rows);
  for (int32_t first = 0; first < a.rows;) {
    Tile tiles[kTilesAtOnce];
    int count = 0;
    int32_t rows = 0, columns = 0;
    for (bool more = true; more && count < kTilesAtOnce && first < a.rows; first += width) {
      Tile& t = tiles[count];
      t.first = first;
      t.rows = a.rows - first < width ? a.rows - first : width;
      if (!sees(a, page, t)) {
        more = count == 0;
        continue;
      }
      kScore[t.rows - 1](a, t, page, scores + rows * 64);
      columns = t.columns > columns ? t.columns : columns;
      rows += t.rows;
      ++count;
    }
    if (count == 0) return;
    const auto softmax = columns <= 16   ? rows_softmax<1>
                         : columns <= 32 ? rows_softmax<2>
                         : columns <= 48 ? rows_softmax<3>
                                         : rows_softmax<4>;
    softmax(a, tiles[0].first, rows, page.start, scores, alpha);
    for (int i = 0, row = 0; i < count; row += tiles[i++].rows)
      kValue[tiles[i].rows - 1](a, tiles[i], page, scores + row * 64, alpha + row);
  }
}

template <class T>
static void probs_page(const AttendBlock& a, const AttendProbs& p, const AttendPage& page) {
  const T* k = static_cast<const T*>(page.k);
  const int32_t start = page.start, count = page.count;
  alignas(64) float scores[64];
  for (int32_t r = 0; r < a.rows; ++r) {
    if (!p.out[r] || p.sum[r] == 0.0f) continue;
    Vec acc[4];
    CYB_UNROLL for (int j = 0; j < 4; ++j) acc[j] = set1(0.0f);
    for (int32_t d = 0; d < a.k_dim; ++d) {
      const Vec w = set1(a.q[r][d]);
      CYB_UNROLL for (int j = 0; j < 4; ++j) acc[j] = fma(w, load16(k + key_at(d, 16 * j, a.k_dim)), acc[j]);
    }
    CYB_UNROLL for (int j = 0; j < 4; ++j) store(scores + 16 * j, acc[j]);
    Vec s[4];
    row_logits<4>(a, r, start, scores, s);
    const Vec scale = set1(logit_factor(a)), top = set1(-p.max[r]), total = set1(p.sum[r]);
    CYB_UNROLL for (int j = 0; j < 4; ++j)
        store(scores + 16 * j, exp2_negative(fma(s[j], scale, top)) / total);
    for (int32_t j = 0; j < count && start + j < p.columns; ++j) p.out[r][start + j] = scores[j];
  }
}

static void merge_spans(int32_t rows, int32_t v_stride, float* max, float* sum, float* out, const float* max2,
                        const float* sum2, const float* out2) {
  for (int32_t r = 0; r < rows; ++r) {
    if (sum2[r] == 0.0f) continue;
    float* o = out + int64_t{r} * v_stride;
    const float* o2 = out2 + int64_t{r} * v_stride;
    if (sum[r] == 0.0f) {  // nothing yet, whatever 0 · inf has left in out
      max[r] = max2[r];
      sum[r] = sum2[r];
      for (int32_t d = 0; d < v_stride; d += 16) store(o + d, load(o2 + d));
      continue;
    }
    const float now = max[r] < max2[r] ? max2[r] : max[r];
    const float f1 = now == max[r] ? 1.0f : exp2_one(max[r] - now);
    const float f2 = now == max2[r] ? 1.0f : exp2_one(max2[r] - now);
    max[r] = now;
    sum[r] = fma1(sum[r], f1, sum2[r] * f2);
    for (int32_t d = 0; d < v_stride; d += 16)
      store(o + d, fma(load(o + d), set1(f1), load(o2 + d) * set1(f2)));
  }
}

static void finish_row(const float* sink, float* max, float* sum, const float* out, int32_t v_dim,
                       float* result) {
  float factor = 1.0f;
  if (sink && *sink != kHidden) {
    const float logit = *sink * kLog2E, now = *max < logit ? logit : *max;
    factor = now == *max ? 1.0f : exp2_one(*max - now);
    *sum = fma1(*sum, factor, now == logit ? 1.0f : exp2_one(logit - now));
    *max = now;
  }
  if (*sum == 0.0f) {
    for (int32_t d = 0; d < v_dim; ++d) result[d] = 0.0f;
    return;
  }
  const Vec f = set1(factor / *sum);
  // Adding zero turns -0 into 0: which of them a sum of zeros gave depends on the pages that were skipped.
  for (int32_t d = 0; d < v_dim; d += 16) store_first(result + d, load(out + d) * f + set1(0.0f), v_dim - d);
}

constexpr AttentionKernels make_attention_kernels() {
  return {store_page<uint16_t>,  store_page<float>,   store_page_q8,      expand_q8,
          attend_page<uint16_t>, attend_page<int8_t>, attend_page<float>, probs_page<uint16_t>,
          probs_page<float>,     merge_spans,         finish_row};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
