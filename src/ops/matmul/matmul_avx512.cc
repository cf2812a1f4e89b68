// SPDX-License-Identifier: Apache-2.0
// AVX-512 with VNNI: integer products of two groups of 8 rows of W with up to twelve rows of activations.
#include "ops/matmul/simd_avx2-inl.h"

// GCC 12 warns of its own _mm512_undefined_*.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

using VW = __m512;
constexpr int kWide = 16, kPanel = 32, kRowTile = 12;
inline VW vw_zero() { return _mm512_setzero_ps(); }
inline VW vw_load(const float* p) { return _mm512_loadu_ps(p); }
inline void vw_store(float* p, VW v) { _mm512_storeu_ps(p, v); }
inline VW vw_set1(float v) { return _mm512_set1_ps(v); }
inline VW vw_fma(VW a, VW b, VW c) { return _mm512_fmadd_ps(a, b, c); }
inline VW vw_add(VW a, VW b) { return _mm512_add_ps(a, b); }

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"

namespace cyb {
namespace {

inline __m512i two(const uint8_t* p, const uint8_t* q) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(vi_load(p)), vi_load(q), 1);
}
inline __m512 two_scales(const uint8_t* p, const uint8_t* q) {
  const __m256i s =
      _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
                              _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)), 1);
  return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(s));
}
inline __m512i broadcast64(const int8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return _mm512_set1_epi32(v);
}

// dpbusd takes unsigned · signed bytes: weights are the unsigned side, moved up by 128, 8 or 1, and the sums
// start at −128, −8 or −1 times Σx.
struct Q8 {
  static constexpr int64_t kBytes = 272;
  static __m512 scale(const uint8_t* p, const uint8_t* q) { return two_scales(p, q); }
  template <int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool, const Q8Block* x, int64_t ldx,
                  __m512i (&d)[ROWS]) {
    const __m512i flip = _mm512_set1_epi8(static_cast<char>(0x80));
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = _mm512_set1_epi32(x[m * ldx].neg128);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const __m512i w = _mm512_xor_si512(two(p + 16 + 32 * j, q + 16 + 32 * j), flip);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) d[m] = _mm512_dpbusd_epi32(d[m], w, broadcast64(x[m * ldx].q + 4 * j));
    }
  }
};

struct Q4 {
  static constexpr int64_t kBytes = 144;
  static __m512 scale(const uint8_t* p, const uint8_t* q) { return two_scales(p, q); }
  template <int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool, const Q8Block* x, int64_t ldx,
                  __m512i (&d)[ROWS]) {
    const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = _mm512_set1_epi32(x[m * ldx].neg8);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      const __m512i w = two(p + 16 + 32 * j, q + 16 + 32 * j);
      const __m512i low = _mm512_and_si512(w, mask), high = _mm512_and_si512(_mm512_srli_epi16(w, 4), mask);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) d[m] = _mm512_dpbusd_epi32(d[m], low, broadcast64(x[m * ldx].q + 4 * j));
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++)
        d[m] = _mm512_dpbusd_epi32(d[m], high, broadcast64(x[m * ldx].q + 16 + 4 * j));
    }
  }
};

struct Ternary {
  static constexpr int64_t kBytes = 64;
  static __m512 scale(const uint8_t*, const uint8_t*) { return _mm512_set1_ps(1); }
  // A lane holds 16 columns of a row. Shifted by 2t, its bytes give columns t, 4 + t, 8 + t, 12 + t, which
  // the activations are permuted to. `half`: the block's second half is absent, and its activations are zero.
  template <int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool half, const Q8Block* x, int64_t ldx,
                  __m512i (&d)[ROWS]) {
    const __m512i mask = _mm512_set1_epi8(3);
    const __m512i plus1 = _mm512_set1_epi32(0x01000201), first = _mm512_set1_epi32(0x0c080400);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = _mm512_set1_epi32(x[m * ldx].neg1);
    for (int u = 0; u < (half ? 1 : 2); u++) {
      __m512i w = two(p + 32 * u, q + 32 * u), pick = first;
      for (int t = 0; t < 4; t++) {
        const __m512i code = _mm512_shuffle_epi8(plus1, _mm512_and_si512(w, mask));
#pragma GCC unroll 12
        for (int m = 0; m < ROWS; m++) {
          const __m512i xx = _mm512_broadcast_i32x4(
              _mm_loadu_si128(reinterpret_cast<const __m128i*>(x[m * ldx].q + 16 * u)));
          d[m] = _mm512_dpbusd_epi32(d[m], code, _mm512_shuffle_epi8(xx, pick));
        }
        w = _mm512_srli_epi16(w, 2);
        pick = _mm512_add_epi8(pick, _mm512_set1_epi8(1));
      }
    }
  }
};

// Groups `group` and `group2`, which may be the same one.
template <class E, int ROWS>
inline void tile(const MatmulArgs& args, int64_t row, int64_t group, int64_t group2) {
  const int64_t k = args.w.k, blocks = (k + 31) / 32, ldx = args.ldxq;
  const bool ends_half = (k + 15) / 16 % 2 != 0;
  const int64_t group_bytes = E::kBytes == 64 ? (k + 15) / 16 * 32 : blocks * E::kBytes;
  const uint8_t *p = args.w.data + group * group_bytes, *q = args.w.data + group2 * group_bytes;
  const Q8Block* x = args.xq + row * ldx;
  __m512 acc[ROWS];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) acc[m] = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; b++, p += E::kBytes, q += E::kBytes, x++) {
    if constexpr (ROWS == 1) {
      _mm_prefetch(reinterpret_cast<const char*>(p + 2048), _MM_HINT_T0);
      _mm_prefetch(reinterpret_cast<const char*>(q + 2048), _MM_HINT_T0);
    }
    __m512i d[ROWS];
    E::template dot<ROWS>(p, q, ends_half && b == blocks - 1, x, ldx, d);
    const __m512 scale = E::scale(p, q);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++)
      acc[m] = _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(d[m]), _mm512_set1_ps(x[m * ldx].scale)),
                               scale, acc[m]);
  }
  alignas(64) float total[16];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) {
    _mm512_store_ps(total, acc[m]);
    finish(args, row + m, group * 8, total);
    if (group2 != group) finish(args, row + m, group2 * 8, total + 8);
  }
}

template <class E, int ROWS>
void rows_at_most(const MatmulArgs& args, int64_t rows, int64_t row, int64_t group, int64_t group2) {
  if (rows == ROWS)
    tile<E, ROWS>(args, row, group, group2);
  else if constexpr (ROWS > 1)
    rows_at_most<E, ROWS - 1>(args, rows, row, group, group2);
}

template <class E>
void q8_acts(const MatmulArgs& args, const MatmulRange& range) {
  for (int64_t group = range.group_begin; group < range.group_end; group += 2) {
    const int64_t group2 = group + 1 < range.group_end ? group + 1 : group;
    int64_t row = range.row_begin;
    for (; row + 12 <= range.row_end; row += 12) tile<E, 12>(args, row, group, group2);
    if (row < range.row_end) rows_at_most<E, 11>(args, range.row_end - row, row, group, group2);
  }
}

}  // namespace

const MatmulKernels matmul_kernels_avx512 = {Isa::avx512,
                                             quantize_row,
                                             {nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>},
                                             {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>,
                                              f32_acts<ExpandQ4>, f32_acts<ExpandTernary>},
                                             dense};

}  // namespace cyb
