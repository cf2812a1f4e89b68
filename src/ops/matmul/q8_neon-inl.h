// SPDX-License-Identifier: Apache-2.0
// Integer products with NEON: one group of 8 rows of W with up to four rows of activations. The including
// file names Sum, of the products of four bytes in each lane: add() of two pieces, get().
#pragma once

#include "ops/matmul/finish-inl.h"

namespace cyb {
namespace {

struct Q8 {
  static constexpr int64_t kBytes = 272;
  template <int ROWS>
  static void dot(const uint8_t* p, bool, const Q8Block* const (&x)[ROWS], Sum (&d)[ROWS]) {
    for (int j = 0; j < 8; j += 2) {
      const uint8_t* c = p + 16 + 32 * j;
      const int8x16_t w0[2] = {load16(c), load16(c + 16)}, w1[2] = {load16(c + 32), load16(c + 48)};
      for (int m = 0; m < ROWS; m++)
        d[m].add(w0, broadcast4(x[m]->q + 4 * j), w1, broadcast4(x[m]->q + 4 * j + 4));
    }
  }
};

struct Q4 {
  static constexpr int64_t kBytes = 144;
  static int8x16_t low(int8x16_t v) { return vsubq_s8(vandq_s8(v, vdupq_n_s8(15)), vdupq_n_s8(8)); }
  static int8x16_t high(int8x16_t v) {
    return vsubq_s8(vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(v), 4)), vdupq_n_s8(8));
  }
  template <int ROWS>
  static void dot(const uint8_t* p, bool, const Q8Block* const (&x)[ROWS], Sum (&d)[ROWS]) {
    for (int j = 0; j < 4; j++) {
      const int8x16_t a = load16(p + 16 + 32 * j), b = load16(p + 32 + 32 * j);
      const int8x16_t w0[2] = {low(a), low(b)}, w1[2] = {high(a), high(b)};
      for (int m = 0; m < ROWS; m++)
        d[m].add(w0, broadcast4(x[m]->q + 4 * j), w1, broadcast4(x[m]->q + 16 + 4 * j));
    }
  }
};

struct Ternary {
  static constexpr int64_t kBytes = 64;
  // A lane holds 16 columns of a row. Shifted by 2t, its bytes give columns t, 4 + t, 8 + t, 12 + t, which
  // the activations are permuted to. `half`: the block's second half is absent.
  static int8x16_t codes(uint8x16_t v) {
    const int8x16_t table = vreinterpretq_s8_s32(vdupq_n_s32(0x00ff0100));
    return vqtbl1q_s8(table, vandq_u8(v, vdupq_n_u8(3)));
  }
  template <int ROWS>
  static void dot(const uint8_t* p, bool half, const Q8Block* const (&x)[ROWS], Sum (&d)[ROWS]) {
    for (int u = 0; u < (half ? 1 : 2); u++) {
      uint8x16_t a = vld1q_u8(p + 32 * u), b = vld1q_u8(p + 32 * u + 16);
      uint8x16_t pick = vreinterpretq_u8_u32(vdupq_n_u32(0x0c080400));
      for (int t = 0; t < 4; t += 2) {
        const int8x16_t w0[2] = {codes(a), codes(b)};
        const int8x16_t w1[2] = {codes(vshrq_n_u8(a, 2)), codes(vshrq_n_u8(b, 2))};
        const uint8x16_t next = vaddq_u8(pick, vdupq_n_u8(1));
        for (int m = 0; m < ROWS; m++) {
          const int8x16_t xx = vld1q_s8(x[m]->q + 16 * u);
          d[m].add(w0, vqtbl1q_s8(xx, pick), w1, vqtbl1q_s8(xx, next));
        }
        a = vshrq_n_u8(a, 4);
        b = vshrq_n_u8(b, 4);
        pick = vaddq_u8(pick, vdupq_n_u8(2));
      }
    }
  }
};

template <class E, int ROWS>
inline void tile(const MatmulArgs& args, int64_t row, int64_t group) {
  const int64_t k = args.w.k, blocks = (k + 31) / 32;
  const bool ends_half = (k + 15) / 16 % 2 != 0;
  const uint8_t* p = args.w.data + group * group_bytes<E>(k);
  const Q8Block* x[ROWS];
  V8 acc[ROWS];
  for (int m = 0; m < ROWS; m++) x[m] = args.xq + (row + m) * args.ldxq, acc[m] = v8_zero();
  for (int64_t b = 0; b < blocks; b++, p += E::kBytes) {
    Sum d[ROWS];
    E::template dot<ROWS>(p, ends_half && b == blocks - 1, x, d);
    V8 scale;
    if constexpr (E::kBytes == 64)
      scale = v8_set1(1);
    else
      scale = vi_to_f32(vi_load_i16(p));
    for (int m = 0; m < ROWS; m++) {
      acc[m] = v8_fma(v8_mul(vi_to_f32(d[m].get()), v8_set1(x[m]->scale)), scale, acc[m]);
      x[m]++;
    }
  }
  float total[ROWS * 8];
  for (int m = 0; m < ROWS; m++) v8_store(total + 8 * m, acc[m]);
  finish(args, row, ROWS, group * 8, total, 8);
}

template <class E>
void q8_acts(const MatmulArgs& args, const MatmulRange& range) {
  for (int64_t group = range.group_begin; group < range.group_end; group++) {
    int64_t row = range.row_begin;
    for (; row + 4 <= range.row_end; row += 4) tile<E, 4>(args, row, group);
    switch (range.row_end - row) {
      case 3:
        tile<E, 3>(args, row, group);
        break;
      case 2:
        tile<E, 2>(args, row, group);
        break;
      case 1:
        tile<E, 1>(args, row, group);
        break;
    }
  }
}

}  // namespace
}  // namespace cyb
