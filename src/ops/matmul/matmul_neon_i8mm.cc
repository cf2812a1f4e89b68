// SPDX-License-Identifier: Apache-2.0
// NEON with the product of two pairs of eight bytes (smmla): two rows of W with two rows of activations at once.
#include "ops/matmul/sum_neon_dot-inl.h"
#include "ops/matmul/tables.h"

#include "ops/matmul/q8_neon-inl.h"

namespace cyb {
namespace {

// d of four rows of x in pairs, from pieces 2i and 2i + 1 of the codes: columns 8i … 8i + 8.
struct Square {
  int32x4_t s[2][4];  // pairs of rows of x; pairs of rows of W
  Square() {
    for (auto& pair : s)
      for (int32x4_t& v : pair) v = vdupq_n_s32(0);
  }
  void add(const int8x16_t (&w0)[2], const int8x16_t (&w1)[2], const Q8Block* const (&x)[4], int column) {
    int8x16_t w[4];
    for (int h = 0; h < 2; h++) {
      const int32x4_t a = vreinterpretq_s32_s8(w0[h]), b = vreinterpretq_s32_s8(w1[h]);
      w[2 * h] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
      w[2 * h + 1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
    }
    for (int p = 0; p < 2; p++) {
      const int8x16_t xx = vcombine_s8(vld1_s8(x[2 * p]->q + column), vld1_s8(x[2 * p + 1]->q + column));
      for (int i = 0; i < 4; i++) s[p][i] = vmmlaq_s32(s[p][i], xx, w[i]);
    }
  }
  VI get(int m) const {
    const int32x4_t(&v)[4] = s[m / 2];
    return m % 2 == 0 ? VI{vcombine_s32(vget_low_s32(v[0]), vget_low_s32(v[1])),
                           vcombine_s32(vget_low_s32(v[2]), vget_low_s32(v[3]))}
                      : VI{vcombine_s32(vget_high_s32(v[0]), vget_high_s32(v[1])),
                           vcombine_s32(vget_high_s32(v[2]), vget_high_s32(v[3]))};
  }
};

inline void square(Q8, const uint8_t* p, const Q8Block* const (&x)[4], Square& d) {
  for (int j = 0; j < 8; j += 2) {
    const uint8_t* c = p + 16 + 32 * j;
    d.add({load16(c), load16(c + 16)}, {load16(c + 32), load16(c + 48)}, x, 4 * j);
  }
}

inline void square(Q4, const uint8_t* p, const Q8Block* const (&x)[4], Square& d) {
  for (int j = 0; j < 4; j += 2) {
    const uint8_t* c = p + 16 + 32 * j;
    const int8x16_t a = load16(c), b = load16(c + 16), e = load16(c + 32), f = load16(c + 48);
    d.add({Q4::low(a), Q4::low(b)}, {Q4::low(e), Q4::low(f)}, x, 4 * j);
    d.add({Q4::high(a), Q4::high(b)}, {Q4::high(e), Q4::high(f)}, x, 16 + 4 * j);
  }
}

template <class E>
void square_tile(const MatmulArgs& args, int64_t row, int64_t group) {
  const int64_t blocks = (args.w.k + 31) / 32;
  const uint8_t* p = args.w.data + group * blocks * E::kBytes;
  const Q8Block* x[4];
  V8 acc[4];
  for (int m = 0; m < 4; m++) x[m] = args.xq + (row + m) * args.ldxq, acc[m] = v8_zero();
  for (int64_t b = 0; b < blocks; b++, p += E::kBytes) {
    Square d;
    square(E(), p, x, d);
    const V8 scale = vi_to_f32(vi_load_i16(p));
    for (int m = 0; m < 4; m++) {
      acc[m] = v8_fma(v8_mul(vi_to_f32(d.get(m)), v8_set1(x[m]->scale)), scale, acc[m]);
      x[m]++;
    }
  }
  float total[32];
  for (int m = 0; m < 4; m++) v8_store(total + 8 * m, acc[m]);
  finish(args, row, 4, group * 8, total, 8);
}

template <class E>
void squares(const MatmulArgs& args, const MatmulRange& range) {
  int64_t row = range.row_begin;
  for (int64_t group = range.group_begin; group < range.group_end; group++)
    for (row = range.row_begin; row + 4 <= range.row_end; row += 4) square_tile<E>(args, row, group);
  if (row < range.row_end) q8_acts<E>(args, {row, range.row_end, range.group_begin, range.group_end});
}

}  // namespace

const Q8Products q8_products_neon_i8mm = {{nullptr, nullptr, squares<Q8>, squares<Q4>, q8_acts<Ternary>}};

}  // namespace cyb
