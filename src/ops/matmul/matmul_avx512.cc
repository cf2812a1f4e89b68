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

// Vectors that hold one or two groups of 8 rows. Few rows of activations wait for memory, which is read
// fastest as one stream: one group at a time. More rows wait for arithmetic: two groups.
template <int GROUPS>
struct Lanes;

template <>
struct Lanes<1> {
  using I = __m256i;
  using F = __m256;
  static I load(const uint8_t* p, const uint8_t*) { return vi_load(p); }
  static F scales(const uint8_t* p, const uint8_t*) { return vi_to_f32(vi_load_i16(p)); }
  static I set4(const int8_t* p) { return broadcast4(p); }
  static I set16(const int8_t* p) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I set1(int32_t v) { return _mm256_set1_epi32(v); }
  static F set1f(float v) { return _mm256_set1_ps(v); }
  static I bit_and(I a, I b) { return _mm256_and_si256(a, b); }
  static I bit_xor(I a, I b) { return _mm256_xor_si256(a, b); }
  static I shift4(I a) { return _mm256_srli_epi16(a, 4); }
  static I shift2(I a) { return _mm256_srli_epi16(a, 2); }
  static I add8(I a, I b) { return _mm256_add_epi8(a, b); }
  static I shuffle(I a, I b) { return _mm256_shuffle_epi8(a, b); }
  static I dot(I sum, I u8, I i8) { return _mm256_dpbusd_epi32(sum, u8, i8); }
  static F fma(I d, F xs, F scale, F acc) {
    return _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(d), xs), scale, acc);
  }
  static void store(float* p, F v) { _mm256_storeu_ps(p, v); }
};

template <>
struct Lanes<2> {
  using I = __m512i;
  using F = __m512;
  static I load(const uint8_t* p, const uint8_t* q) {
    return _mm512_inserti64x4(_mm512_castsi256_si512(vi_load(p)), vi_load(q), 1);
  }
  static F scales(const uint8_t* p, const uint8_t* q) {
    const __m256i s =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)), 1);
    return _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(s));
  }
  static I set4(const int8_t* p) {
    int32_t v;
    __builtin_memcpy(&v, p, 4);
    return _mm512_set1_epi32(v);
  }
  static I set16(const int8_t* p) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static I set1(int32_t v) { return _mm512_set1_epi32(v); }
  static F set1f(float v) { return _mm512_set1_ps(v); }
  static I bit_and(I a, I b) { return _mm512_and_si512(a, b); }
  static I bit_xor(I a, I b) { return _mm512_xor_si512(a, b); }
  static I shift4(I a) { return _mm512_srli_epi16(a, 4); }
  static I shift2(I a) { return _mm512_srli_epi16(a, 2); }
  static I add8(I a, I b) { return _mm512_add_epi8(a, b); }
  static I shuffle(I a, I b) { return _mm512_shuffle_epi8(a, b); }
  static I dot(I sum, I u8, I i8) { return _mm512_dpbusd_epi32(sum, u8, i8); }
  static F fma(I d, F xs, F scale, F acc) {
    return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(d), xs), scale, acc);
  }
  static void store(float* p, F v) { _mm512_storeu_ps(p, v); }
};

// dpbusd takes unsigned · signed bytes: weights are the unsigned side, moved up by 128, 8 or 1, and the sums
// start at −128, −8 or −1 times Σx.
struct Q8 {
  static constexpr int64_t kBytes = 272;
  template <class L, int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool, const Q8Block* x, int64_t ldx,
                  typename L::I (&d)[ROWS]) {
    const typename L::I flip = L::set1(static_cast<int32_t>(0x80808080u));
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = L::set1(x[m * ldx].neg128);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const typename L::I w = L::bit_xor(L::load(p + 16 + 32 * j, q + 16 + 32 * j), flip);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) d[m] = L::dot(d[m], w, L::set4(x[m * ldx].q + 4 * j));
    }
  }
};

struct Q4 {
  static constexpr int64_t kBytes = 144;
  template <class L, int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool, const Q8Block* x, int64_t ldx,
                  typename L::I (&d)[ROWS]) {
    const typename L::I mask = L::set1(0x0f0f0f0f);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = L::set1(x[m * ldx].neg8);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      const typename L::I w = L::load(p + 16 + 32 * j, q + 16 + 32 * j);
      const typename L::I low = L::bit_and(w, mask), high = L::bit_and(L::shift4(w), mask);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) d[m] = L::dot(d[m], low, L::set4(x[m * ldx].q + 4 * j));
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) d[m] = L::dot(d[m], high, L::set4(x[m * ldx].q + 16 + 4 * j));
    }
  }
};

struct Ternary {
  static constexpr int64_t kBytes = 64;
  // A lane holds 16 columns of a row. Shifted by 2t, its bytes give columns t, 4 + t, 8 + t, 12 + t, which
  // the activations are permuted to. `half`: the block's second half is absent, and its activations are zero.
  template <class L, int ROWS>
  static void dot(const uint8_t* p, const uint8_t* q, bool half, const Q8Block* x, int64_t ldx,
                  typename L::I (&d)[ROWS]) {
    const typename L::I mask = L::set1(0x03030303), plus1 = L::set1(0x01000201);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = L::set1(x[m * ldx].neg1);
    for (int u = 0; u < (half ? 1 : 2); u++) {
      typename L::I w = L::load(p + 32 * u, q + 32 * u), pick = L::set1(0x0c080400);
#pragma GCC unroll 4
      for (int t = 0; t < 4; t++) {
        const typename L::I code = L::shuffle(plus1, L::bit_and(w, mask));
#pragma GCC unroll 12
        for (int m = 0; m < ROWS; m++)
          d[m] = L::dot(d[m], code, L::shuffle(L::set16(x[m * ldx].q + 16 * u), pick));
        w = L::shift2(w);
        pick = L::add8(pick, L::set1(0x01010101));
      }
    }
  }
};

// Groups `group` and, with two, the next one.
template <class E, int GROUPS, int ROWS>
void tile(const MatmulArgs& args, int64_t row, int64_t group) {
  using L = Lanes<GROUPS>;
  const int64_t k = args.w.k, blocks = (k + 31) / 32, ldx = args.ldxq;
  const bool ends_half = (k + 15) / 16 % 2 != 0;
  const int64_t group_bytes = E::kBytes == 64 ? (k + 15) / 16 * 32 : blocks * E::kBytes;
  const uint8_t *p = args.w.data + group * group_bytes, *q = p + group_bytes;
  const Q8Block* x = args.xq + row * ldx;
  typename L::F acc[ROWS];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) acc[m] = L::set1f(0);
  for (int64_t b = 0; b < blocks; b++, p += E::kBytes, q += E::kBytes, x++) {
    typename L::I d[ROWS];
    E::template dot<L, ROWS>(p, q, ends_half && b == blocks - 1, x, ldx, d);
    typename L::F scale;
    if constexpr (E::kBytes == 64)
      scale = L::set1f(1);
    else
      scale = L::scales(p, q);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) acc[m] = L::fma(d[m], L::set1f(x[m * ldx].scale), scale, acc[m]);
  }
  alignas(64) float total[ROWS * 8 * GROUPS];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) L::store(total + 8 * GROUPS * m, acc[m]);
  for (int g = 0; g < GROUPS; g++) finish(args, row, ROWS, (group + g) * 8, total + 8 * g, 8 * GROUPS);
}

template <class E>
void q8_acts(const MatmulArgs& args, const MatmulRange& range) {
  const int64_t end = range.row_end;
  int64_t group = range.group_begin;
  if (end - range.row_begin > 8)
    for (; group + 2 <= range.group_end; group += 2) {
      int64_t row = range.row_begin;
      for (; row + 12 <= end; row += 12) tile<E, 2, 12>(args, row, group);
      for (; row + 4 <= end; row += 4) tile<E, 2, 4>(args, row, group);
      for (; row < end; row++) tile<E, 2, 1>(args, row, group);
    }
  for (; group < range.group_end; group++) {
    int64_t row = range.row_begin;
    for (; row + 4 <= end; row += 4) tile<E, 1, 4>(args, row, group);
    switch (end - row) {
      case 3:
        tile<E, 1, 3>(args, row, group);
        break;
      case 2:
        tile<E, 1, 2>(args, row, group);
        break;
      case 1:
        tile<E, 1, 1>(args, row, group);
        break;
    }
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
