// SPDX-License-Identifier: Apache-2.0
// AVX2: integer products of one group of 8 rows of W with up to four rows of activations.
#include "ops/matmul/simd_avx2-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

using VW = __m256;
constexpr int kWide = 8, kPanel = 16, kRowTile = 6;
inline VW vw_zero() { return _mm256_setzero_ps(); }
inline VW vw_load(const float* p) { return _mm256_loadu_ps(p); }
inline void vw_store(float* p, VW v) { _mm256_storeu_ps(p, v); }
inline VW vw_set1(float v) { return _mm256_set1_ps(v); }
inline VW vw_fma(VW a, VW b, VW c) { return _mm256_fmadd_ps(a, b, c); }
inline VW vw_add(VW a, VW b) { return _mm256_add_ps(a, b); }

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"

namespace cyb {
namespace {

// Each encoding: bytes of one block column of a group, and d of ROWS activation blocks.
// Stops GCC from turning a chain of integer sums into a tree, which needs more registers than there are.
inline void keep(VI& v) { asm("" : "+x"(v)); }

struct Q8 {
  static constexpr int64_t kBytes = 272;
  static V8 scale(const uint8_t* p) { return vi_to_f32(vi_load_i16(p)); }
  // |w| · ±x: pairs reach 128 · 127 · 2, which 16 bits hold.
  template <int ROWS>
  static void dot(const uint8_t* p, bool, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    const VI ones = _mm256_set1_epi16(1);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) d[m] = _mm256_setzero_si256();
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const VI w = vi_load(p + 16 + 32 * j), magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) {
        const VI pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(broadcast4(x[m]->q + 4 * j), w));
        d[m] = _mm256_add_epi32(d[m], _mm256_madd_epi16(pairs, ones));
        keep(d[m]);
      }
    }
  }
};

struct Q4 {
  static constexpr int64_t kBytes = 144;
  static V8 scale(const uint8_t* p) { return vi_to_f32(vi_load_i16(p)); }
  // Nibbles as they are, 16 bits hold eight pairs of 15 · 127; −8 Σx comes after.
  template <int ROWS>
  static void dot(const uint8_t* p, bool, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    const VI mask = _mm256_set1_epi8(15), ones = _mm256_set1_epi16(1);
    VI s[ROWS];
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      const VI w = vi_load(p + 16 + 32 * j);
      const VI low = _mm256_and_si256(w, mask), high = _mm256_and_si256(_mm256_srli_epi16(w, 4), mask);
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) {
        const VI a = _mm256_maddubs_epi16(low, broadcast4(x[m]->q + 4 * j));
        const VI b = _mm256_maddubs_epi16(high, broadcast4(x[m]->q + 16 + 4 * j));
        s[m] = j == 0 ? _mm256_add_epi16(a, b) : _mm256_add_epi16(s[m], _mm256_add_epi16(a, b));
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++)
      d[m] = _mm256_add_epi32(_mm256_madd_epi16(s[m], ones), _mm256_set1_epi32(x[m]->neg8));
  }
};

struct Ternary {
  static constexpr int64_t kBytes = 64;
  static V8 scale(const uint8_t*) { return v8_set1(1); }
  // A lane holds 16 columns of a row. Shifted by 2t, its bytes give columns t, 4 + t, 8 + t, 12 + t, which
  // the activations are permuted to. Codes become value + 1; −Σx comes after. `half`: the block's second half
  // is absent.
  template <int ROWS>
  static void dot(const uint8_t* p, bool half, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    const VI mask = _mm256_set1_epi8(3), ones = _mm256_set1_epi16(1);
    const VI plus1 = _mm256_set1_epi32(0x01000201), first = _mm256_set1_epi32(0x0c080400);
    VI s[ROWS];
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) s[m] = _mm256_setzero_si256();
    for (int u = 0; u < (half ? 1 : 2); u++) {
      VI w = vi_load(p + 32 * u), pick = first;
      for (int t = 0; t < 4; t++) {
        const VI code = _mm256_shuffle_epi8(plus1, _mm256_and_si256(w, mask));
#pragma GCC unroll 4
        for (int m = 0; m < ROWS; m++) {
          const VI xx = _mm256_broadcastsi128_si256(
              _mm_loadu_si128(reinterpret_cast<const __m128i*>(x[m]->q + 16 * u)));
          s[m] = _mm256_add_epi16(s[m], _mm256_maddubs_epi16(code, _mm256_shuffle_epi8(xx, pick)));
        }
        w = _mm256_srli_epi16(w, 2);
        pick = _mm256_add_epi8(pick, _mm256_set1_epi8(1));
      }
    }
    // With an absent half its activations are zero, so the whole block's sum serves.
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++)
      d[m] = _mm256_add_epi32(_mm256_madd_epi16(s[m], ones), _mm256_set1_epi32(x[m]->neg1));
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
#pragma GCC unroll 4
  for (int m = 0; m < ROWS; m++) x[m] = args.xq + (row + m) * args.ldxq, acc[m] = v8_zero();
  for (int64_t b = 0; b < blocks; b++, p += E::kBytes) {
    VI d[ROWS];
    E::template dot<ROWS>(p, ends_half && b == blocks - 1, x, d);
    const V8 scale = E::scale(p);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) {
      acc[m] = _mm256_fmadd_ps(_mm256_mul_ps(vi_to_f32(d[m]), v8_set1(x[m]->scale)), scale, acc[m]);
      x[m]++;
    }
  }
  alignas(32) float total[ROWS * 8];
#pragma GCC unroll 4
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

const MatmulKernels matmul_kernels_avx2 = {Isa::avx2,
                                           quantize_row,
                                           {nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>},
                                           {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>,
                                            f32_acts<ExpandQ4>, f32_acts<ExpandTernary>},
                                           dense};

}  // namespace cyb
