// SPDX-License-Identifier: Apache-2.0
// NEON: integer products of one group of 8 rows of W with up to four rows of activations, with the
// dot-product instructions where the build has them.
#include "ops/matmul/simd_neon-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

using VW = float32x4_t;
constexpr int kWide = 4, kPanel = 16, kTileColumns = 16, kRowTile = 6;
inline VW vw_zero() { return vdupq_n_f32(0); }
inline VW vw_load(const float* p) { return vld1q_f32(p); }
inline void vw_store(float* p, VW v) { vst1q_f32(p, v); }
inline VW vw_set1(float v) { return vdupq_n_f32(v); }
inline VW vw_fma(VW a, VW b, VW c) { return vfmaq_f32(c, a, b); }
inline VW vw_add(VW a, VW b) { return vaddq_f32(a, b); }

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"

namespace cyb {
namespace {

// Sums of four bytes' products for 8 rows. Pieces come in pairs, because 16 bits hold two products of 128 ·
// 127.
#if defined(__ARM_FEATURE_DOTPROD)
struct Sum {
  int32x4_t a = vdupq_n_s32(0), b = vdupq_n_s32(0);
  void add(const int8x16_t (&w0)[2], int8x16_t x0, const int8x16_t (&w1)[2], int8x16_t x1) {
    a = vdotq_s32(vdotq_s32(a, w0[0], x0), w1[0], x1);
    b = vdotq_s32(vdotq_s32(b, w0[1], x0), w1[1], x1);
  }
  VI get() const { return {a, b}; }
};
#else
struct Sum {
  int32x4_t s[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
  void add(const int8x16_t (&w0)[2], int8x16_t x0, const int8x16_t (&w1)[2], int8x16_t x1) {
    for (int i = 0; i < 2; i++) {
      const int16x8_t low =
          vmlal_s8(vmull_s8(vget_low_s8(w0[i]), vget_low_s8(x0)), vget_low_s8(w1[i]), vget_low_s8(x1));
      s[2 * i] = vpadalq_s16(s[2 * i], low);
      s[2 * i + 1] = vpadalq_s16(s[2 * i + 1], vmlal_high_s8(vmull_high_s8(w0[i], x0), w1[i], x1));
    }
  }
  VI get() const { return {vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3])}; }
};
#endif

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
  const int64_t group_bytes = E::kBytes == 64 ? (k + 15) / 16 * 32 : blocks * E::kBytes;
  const uint8_t* p = args.w.data + group * group_bytes;
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

const MatmulKernels matmul_kernels_neon = {Isa::neon,
                                           quantize_row,
                                           {nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>},
                                           {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>,
                                            f32_acts<ExpandQ4>, f32_acts<ExpandTernary>},
                                           dense};

}  // namespace cyb
