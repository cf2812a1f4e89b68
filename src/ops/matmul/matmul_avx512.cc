// SPDX-License-Identifier: Apache-2.0
// AVX-512: f32 products, and integer products without VNNI, by sums of 16 bits or products of 16-bit
// integers.
#include "ops/matmul/simd_avx512-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

constexpr int kPanel = 48, kTileColumns = 48, kRowTile = 8;

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"
#include "ops/matmul/sum16-inl.h"

namespace cyb {
namespace {

struct Sum16Wide {
  static __m512i first(__m512i w, __m512i x, int32_t) { return _mm512_maddubs_epi16(w, x); }
  static __m512i add(__m512i sum, __m512i w, __m512i x) {
    __m512i s = _mm512_add_epi16(sum, _mm512_maddubs_epi16(w, x));
    keep(s);
    return s;
  }
  static __m512i get(__m512i sum, int32_t offset) {
    return _mm512_add_epi32(_mm512_madd_epi16(sum, _mm512_set1_epi16(1)), _mm512_set1_epi32(offset));
  }
};

// q8, many rows: weights and activations as 16-bit integers, pairs of products in 32 bits. Pairs of bytes
// need as many instructions: w + 128 in halves of 4 bits takes two products each, and |w| · ±x has no vpsignb
// here. Two vectors a row share each load of x, since the processor takes in hardly more instructions than
// these.
template <int VECS>
struct WordsQ8 {
  using Codes = CodesQ8;
  struct F {
    __m512 at[VECS];
  };
  static constexpr int64_t kLanes = 16 * VECS, kBlockBytes = 64 * kLanes, kBlocksAtOnce = 12 / VECS;
  static constexpr int kRows = 12 / VECS;
  static F zero() {
    F v;
    for (int i = 0; i < VECS; i++) v.at[i] = vw_zero();
    return v;
  }
  static F load(const float* p) {
    F v;
    for (int i = 0; i < VECS; i++) v.at[i] = vw_load(p + 16 * i);
    return v;
  }
  static void store(float* p, const F& v) {
    for (int i = 0; i < VECS; i++) vw_store(p + 16 * i, v.at[i]);
  }
  // Piece j of 16: columns 2j and 2j + 1 of each row.
  static void expand(const uint8_t* p, bool, uint8_t* out, float* scale) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const __m512i w = _mm512_cvtepi8_epi16(vi_load(p + 16 + 32 * j));
      uint8_t* to = out + 8 * kLanes * j;
      _mm256_store_si256(reinterpret_cast<VI*>(to), _mm512_cvtepi64_epi32(w));
      _mm256_store_si256(reinterpret_cast<VI*>(to + 4 * kLanes),
                         _mm512_cvtepi64_epi32(_mm512_srli_epi64(w, 32)));
    }
    v8_store(scale, CodesQ8::scale(p));
  }
  template <int ROWS>
  static CYB_INLINE void block(const uint8_t* codes, const float* scale, const RowBlocks<ROWS>& x,
                               F (&acc)[ROWS]) {
    alignas(64) int16_t words[ROWS][32];
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) _mm512_store_si512(words[m], _mm512_cvtepi8_epi16(vi_load(x[m].q)));
    asm("" : "+m"(words));  // GCC would take each pair out of the vectors instead
    __m512i d[ROWS][VECS];
#pragma GCC unroll 16
    for (int j = 0; j < 16; j++) {
      __m512i w[VECS];
#pragma GCC unroll 2
      for (int v = 0; v < VECS; v++) w[v] = _mm512_load_si512(codes + 4 * kLanes * j + 64 * v);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++) {
        int32_t pair;
        __builtin_memcpy(&pair, words[m] + 2 * j, 4);
        const __m512i xx = _mm512_set1_epi32(pair);
#pragma GCC unroll 2
        for (int v = 0; v < VECS; v++) {
          const __m512i products = _mm512_madd_epi16(w[v], xx);
          d[m][v] = j == 0 ? products : _mm512_add_epi32(d[m][v], products);
          keep(d[m][v]);
        }
      }
    }
#pragma GCC unroll 2
    for (int v = 0; v < VECS; v++) {
      const VW s = vw_load(scale + 16 * v);
#pragma GCC unroll 12
      for (int m = 0; m < ROWS; m++)
        acc[m].at[v] = vw_fma(vw_mul(_mm512_cvtepi32_ps(d[m][v]), vw_set1(x[m].scale)), s, acc[m].at[v]);
    }
  }
};

// Four groups at a time; one or two that are left have a vector of their own.
struct ManyRowsQ8 {
  static void run(const MatmulArgs& args, const MatmulRange& range) {
    MatmulRange fours = range, rest = range;
    const int64_t groups = range.group_end - range.group_begin;
    fours.group_end = rest.group_begin = range.group_begin + (groups % 4 == 3 ? groups : groups / 4 * 4);
    if (fours.group_begin < fours.group_end) ManyRows<WordsQ8<2>>::run(args, fours);
    if (rest.group_begin < rest.group_end) ManyRows<WordsQ8<1>>::run(args, rest);
  }
};

}  // namespace

const MatmulKernels matmul_kernels_avx512 = {
    Isa::avx512,
    quantize_row,
    {nullptr, nullptr, q8_products<CodesQ8, DotQ8, ManyRowsQ8>,
     q8_products<CodesQ4, DotQ4, ManyRows<Expanded<Lanes16, CodesQ4, Sum16Wide, 12>>>,
     q8_products<CodesTernary, DotTernary, ManyRows<Expanded<Lanes16, CodesTernary, Sum16Wide, 12>>>},
    {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>, f32_acts<ExpandQ4>,
     f32_acts<ExpandTernary>},
    dense};

}  // namespace cyb
