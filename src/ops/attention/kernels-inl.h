// SPDX-License-Identifier: Apache-2.0
// kernels.h on sixteen lanes. Bits: a score is one FMA chain over dimensions, a value one FMA chain over
// positions of a page, sums fold in a fixed order; how rows are grouped into tiles changes nothing.
#pragma once

#include <type_traits>

#include "ops/attention/pages-inl.h"
#include "ops/attention/softmax-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr bool kPlain = kParts == 16;

// How many blocks of sixteen positions (or dimensions) go beside `rows` accumulators: registers are 16 of 8
// lanes on AVX2, 32 elsewhere.
constexpr int blocks_beside(int rows) {
  if (kParts == 1) return 4;
  if (kParts == 2) return rows == 1 ? 4 : rows == 2 ? 2 : 1;
  return rows == 1 ? 4 : rows == 2 ? 2 : 1;
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
    for (; count < kTilesAtOnce && first < a.rows; first += width) {
      Tile& t = tiles[count];
      t.first = first;
      t.rows = a.rows - first < width ? a.rows - first : width;
      if (!sees(a, page, t)) {
        if (count > 0) break;  // rows that go together stand together
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
    const Vec factor = set1(a.factor), top = set1(p.max[r]), total = set1(p.sum[r]);
    CYB_UNROLL for (int j = 0; j < 4; ++j)
        store(scores + 16 * j, exp2_negative((s[j] - top) * factor) / total);
    for (int32_t j = 0; j < count && start + j < p.columns; ++j) p.out[r][start + j] = scores[j];
  }
}

static void merge_spans(int32_t rows, int32_t v_stride, float factor, float* max, float* sum, float* out,
                        const float* max2, const float* sum2, const float* out2) {
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
    const float f1 = now == max[r] ? 1.0f : exp2_one((max[r] - now) * factor);
    const float f2 = now == max2[r] ? 1.0f : exp2_one((max2[r] - now) * factor);
    max[r] = now;
    sum[r] = fma1(sum[r], f1, sum2[r] * f2);
    for (int32_t d = 0; d < v_stride; d += 16)
      store(o + d, fma(load(o + d), set1(f1), load(o2 + d) * set1(f2)));
  }
}

static void finish_row(float sink, float factor, float* max, float* sum, const float* out, int32_t v_dim,
                       float* result) {
  float shrink = 1.0f;
  if (sink != kHidden) {
    const float now = *max < sink ? sink : *max;
    shrink = now == *max ? 1.0f : exp2_one((*max - now) * factor);
    *sum = fma1(*sum, shrink, now == sink ? 1.0f : exp2_one((sink - now) * factor));
    *max = now;
  }
  if (*sum == 0.0f) {
    for (int32_t d = 0; d < v_dim; ++d) result[d] = 0.0f;
    return;
  }
  const Vec f = set1(shrink / *sum);
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
