// SPDX-License-Identifier: Apache-2.0
// Encoded weights of 8 rows as vectors of unsigned codes, for dot products of unsigned with signed bytes:
// each() gives piece j, columns 4j … 4j + 4 of the block, four bytes a row. The codes are moved up by 128, 8
// or 1; −128, −8 or −1 times the sum of x stands in the activations' block (acts.h). Included after
// simd_avx2-inl.h.
#pragma once

#include "ops/matmul/q8-inl.h"

namespace cyb {
namespace {

#define CYB_INLINE __attribute__((always_inline)) inline

struct CodesQ8 {
  static constexpr int64_t kBytes = 272;  // of a block of 8 rows
  static constexpr int kUp = 128;         // what codes are moved up by
  static int32_t offset(const Q8Block& x) { return x.neg128; }
  static V8 scale(const uint8_t* p) { return vi_to_f32(vi_load_i16(p)); }
  template <class F>
  static CYB_INLINE void each(const uint8_t* p, bool, F&& f) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) f(j, _mm256_xor_si256(vi_load(p + 16 + 32 * j), _mm256_set1_epi8(-128)));
  }
};

struct CodesQ4 {
  static constexpr int64_t kBytes = 144;
  static constexpr int kUp = 8;
  static int32_t offset(const Q8Block& x) { return x.neg8; }
  static V8 scale(const uint8_t* p) { return vi_to_f32(vi_load_i16(p)); }
  template <class F>
  static CYB_INLINE void each(const uint8_t* p, bool, F&& f) {
    const VI mask = _mm256_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      VI w = vi_load(p + 16 + 32 * j);
      asm("" : "+x"(w));  // GCC would load it twice
      f(j, _mm256_and_si256(w, mask));
      f(4 + j, _mm256_and_si256(_mm256_srli_epi16(w, 4), mask));
    }
  }
};

struct CodesTernary {
  static constexpr int64_t kBytes = 64;
  static constexpr int kUp = 1;
  static int32_t offset(const Q8Block& x) { return x.neg1; }
  static V8 scale(const uint8_t*) { return v8_set1(1); }
  // 16 columns of a row in 4 bytes, and 2 bits for each: the codes 0, 1, −1 become 1, 2, 0 (and 11, which no
  // file has, 1). Four vectors: column 4b + t of each row in byte b of vector t.
  static CYB_INLINE void plus1(VI w, VI (&code)[4]) {
    const VI low = _mm256_setr_epi8(1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1, 2, 0, 1, 1,
                                    2, 0, 1, 1, 2, 0, 1);
    const VI high = _mm256_setr_epi8(1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2,
                                     0, 0, 0, 0, 1, 1, 1, 1);
    const VI mask = _mm256_set1_epi8(15), a = _mm256_and_si256(w, mask),
             b = _mm256_and_si256(_mm256_srli_epi16(w, 4), mask);
    code[0] = _mm256_shuffle_epi8(low, a);
    code[1] = _mm256_shuffle_epi8(high, a);
    code[2] = _mm256_shuffle_epi8(low, b);
    code[3] = _mm256_shuffle_epi8(high, b);
  }
  // `half`: the block's second half is absent; its activations are zero, so any codes serve.
  template <class F>
  static CYB_INLINE void each(const uint8_t* p, bool half, F&& f) {
    for (int u = 0; u < 2; u++) {
      VI c[4];
      plus1(vi_load(p + (half ? 0 : 32 * u)), c);
      // A transposition of 4 × 4 bytes in each row's lane.
      const VI low02 = _mm256_set1_epi32(0x00ff00ff), high = _mm256_set1_epi32(static_cast<int>(0xff00ff00));
      const VI even01 =
          _mm256_or_si256(_mm256_and_si256(c[0], low02), _mm256_slli_epi16(_mm256_and_si256(c[1], low02), 8));
      const VI even23 =
          _mm256_or_si256(_mm256_and_si256(c[2], low02), _mm256_slli_epi16(_mm256_and_si256(c[3], low02), 8));
      const VI odd01 = _mm256_or_si256(_mm256_srli_epi16(c[0], 8), _mm256_and_si256(c[1], high));
      const VI odd23 = _mm256_or_si256(_mm256_srli_epi16(c[2], 8), _mm256_and_si256(c[3], high));
      f(4 * u, _mm256_blend_epi16(even01, _mm256_slli_epi32(even23, 16), 0xaa));
      f(4 * u + 1, _mm256_blend_epi16(odd01, _mm256_slli_epi32(odd23, 16), 0xaa));
      f(4 * u + 2, _mm256_blend_epi16(_mm256_srli_epi32(even01, 16), even23, 0xaa));
      f(4 * u + 3, _mm256_blend_epi16(_mm256_srli_epi32(odd01, 16), odd23, 0xaa));
    }
  }
};

// One block expanded for many rows: its pieces `step` bytes apart, codes moved back down by DOWN, and its
// scale.
template <class Codes, int STEP, int DOWN = 0>
CYB_INLINE void expand_codes(const uint8_t* p, bool half, uint8_t* out, float* scale) {
  Codes::each(
      p, half, [&](int j, VI w) __attribute__((always_inline)) {
        if constexpr (DOWN != 0) w = _mm256_sub_epi8(w, _mm256_set1_epi8(static_cast<char>(DOWN)));
        _mm256_store_si256(reinterpret_cast<VI*>(out + STEP * j), w);
      });
  v8_store(scale, Codes::scale(p));
}

// The sums d of one block for few rows of x, straight from the weights. Sum: first(), add() and get() of four
// bytes' products in each lane; kChains of them at a time hide its latency, both() adds two.
template <class Codes, class Sum, int ROWS>
struct FewRows {
  static constexpr int kChains = ROWS <= 2 ? Sum::kChains : 1;
  static CYB_INLINE void dot(const uint8_t* p, bool half, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    VI sum[kChains][ROWS];
    Codes::each(
        p, half, [&](int j, VI w) __attribute__((always_inline)) {
          constexpr int kLength = 8 / kChains;
          VI(&s)[ROWS] = sum[j / kLength];
#pragma GCC unroll 4
          for (int m = 0; m < ROWS; m++) {
            const VI xx = broadcast4(x[m]->q + 4 * j);
            s[m] = j % kLength == 0 ? Sum::first(w, xx, j == 0 ? Codes::offset(*x[m]) : 0)
                                    : Sum::add(s[m], w, xx);
          }
        });
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) {
      if constexpr (kChains == 2) sum[0][m] = Sum::both(sum[0][m], sum[1][m]);
      d[m] = Sum::get(sum[0][m], Codes::offset(*x[m]));
    }
  }
};

// x is put in the order of the codes' columns rather than the codes in that of x.
template <class Sum, int ROWS>
struct FewRows<CodesTernary, Sum, ROWS> {
  static CYB_INLINE void dot(const uint8_t* p, bool half, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) d[m] = Sum::zero(x[m]->neg1);
    const auto unit = [&](int u) __attribute__((always_inline)) {
      VI code[4];
      CodesTernary::plus1(vi_load(p + 32 * u), code);
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) {
        const VI xx = _mm256_broadcastsi128_si256(
            _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(x[m]->q + 16 * u)), order));
        d[m] = Sum::add(d[m], code[0], _mm256_shuffle_epi32(xx, 0x00));
        d[m] = Sum::add(d[m], code[1], _mm256_shuffle_epi32(xx, 0x55));
        d[m] = Sum::add(d[m], code[2], _mm256_shuffle_epi32(xx, 0xaa));
        d[m] = Sum::add(d[m], code[3], _mm256_shuffle_epi32(xx, 0xff));
      }
    };
    unit(0);
    if (!half) unit(1);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) d[m] = Sum::get(d[m], x[m]->neg1);
  }
};

template <class Codes, class Dot, int ROWS>
void few_tile(const MatmulArgs& args, int64_t row, int64_t group, int64_t ahead) {
  const int64_t k = args.w.k, units = (k + 15) / 16, blocks = (k + 31) / 32;
  const uint8_t* p = args.w.data + group * group_bytes<Codes>(k);
  const Q8Block* x[ROWS];
  V8 acc[ROWS];
#pragma GCC unroll 4
  for (int m = 0; m < ROWS; m++) x[m] = args.xq + (row + m) * args.ldxq, acc[m] = v8_zero();
  for (int64_t b = 0; b < blocks; b++, p += Codes::kBytes) {
    VI d[ROWS];
    fetch_weights<Codes::kBytes>(p, ahead);
    Dot::dot(p, units % 2 != 0 && b == blocks - 1, x, d);
    const V8 scale = Codes::scale(p);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) {
      acc[m] = v8_fma(v8_mul(vi_to_f32(d[m]), v8_set1(x[m]->scale)), scale, acc[m]);
      x[m]++;
    }
  }
  const int64_t column = group * 8;
  if (column + 8 <= args.w.n) {  // finish() from registers
    const Finish8 last(args);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) last(acc[m], column, args.y + (row + m) * args.ldy + column);
    return;
  }
  alignas(32) float total[ROWS * 8];
#pragma GCC unroll 4
  for (int m = 0; m < ROWS; m++) v8_store(total + 8 * m, acc[m]);
  finish(args, row, ROWS, column, total, 8);
}

template <class Codes, template <int> class Dot>
void few_rows(const MatmulArgs& args, const MatmulRange& range, int64_t ahead) {
  const int64_t row = range.row_begin, rows = range.row_end - row;
  for (int64_t g = range.group_begin; g < range.group_end; g++)
    if (rows == 1)
      few_tile<Codes, Dot<1>, 1>(args, row, g, ahead);
    else if (rows == 2)
      few_tile<Codes, Dot<2>, 2>(args, row, g, ahead);
    else if (rows == 3)
      few_tile<Codes, Dot<3>, 3>(args, row, g, ahead);
    else
      few_tile<Codes, Dot<4>, 4>(args, row, g, ahead);
}

// Few rows wait for memory, which is read fastest as one stream: one group at a time, as it lies. More
// rows wait for arithmetic.
template <class Codes, template <int> class Dot, class Many>
void q8_products(const MatmulArgs& args, const MatmulRange& range) {
  const int64_t rows = range.row_end - range.row_begin;
  if (rows <= 0) return;
  if (rows <= kFewRows)
    few_rows<Codes, Dot>(args, range, fetch_ahead());
  else
    Many::run(args, range);
}

// Some groups of 8 rows of W, expanded: 8 pieces of unsigned codes. Sum as FewRows wants it, of Lanes.
template <class Lanes, class CODES, class Sum, int ROW_TILE>
struct Expanded {
  using Codes = CODES;
  using F = typename Lanes::F;
  using I = typename Lanes::I;
  static constexpr int64_t kLanes = Lanes::kLanes, kBlockBytes = 32 * kLanes, kBlocksAtOnce = 24;
  static constexpr int kRows = ROW_TILE;
  static F zero() { return Lanes::zero(); }
  static F load(const float* p) { return Lanes::load(p); }
  static void store(float* p, F v) { Lanes::store(p, v); }
  static void expand(const uint8_t* p, bool half, uint8_t* out, float* scale) {
    expand_codes<Codes, 4 * kLanes>(p, half, out, scale);
  }
  static CYB_INLINE F add(F acc, I d, float scale_x, F scale) {
    return Lanes::fma(Lanes::mul(Lanes::to_f32(d), Lanes::set1(scale_x)), scale, acc);
  }
  template <int ROWS>
  static CYB_INLINE void block(const uint8_t* codes, const float* scale, const RowBlocks<ROWS>& x,
                               F (&acc)[ROWS]) {
    I d[ROWS];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const I w = Lanes::codes(codes + 4 * kLanes * j);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) {
        const I xx = Lanes::broadcast(four_bytes(x[m].q + 4 * j));
        d[m] = j == 0 ? Sum::first(w, xx, Codes::offset(x[m])) : Sum::add(d[m], w, xx);
      }
    }
    const F s = load(scale);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) acc[m] = add(acc[m], Sum::get(d[m], Codes::offset(x[m])), x[m].scale, s);
  }
};

}  // namespace
}  // namespace cyb
