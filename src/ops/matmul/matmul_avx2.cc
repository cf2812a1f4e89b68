// SPDX-License-Identifier: Apache-2.0
// AVX2: integer products by sums of 16 bits.
#include "ops/matmul/simd_avx2-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

using VW = __m256;
constexpr int kWide = 8, kPanel = 48, kTileColumns = 16, kRowTile = 6;
inline VW vw_zero() { return _mm256_setzero_ps(); }
inline VW vw_load(const float* p) { return _mm256_loadu_ps(p); }
inline void vw_store(float* p, VW v) { _mm256_storeu_ps(p, v); }
inline VW vw_set1(float v) { return _mm256_set1_ps(v); }
inline VW vw_fma(VW a, VW b, VW c) { return _mm256_fmadd_ps(a, b, c); }
inline void vw_fma_broadcast(VW& sum, VW w, const float* x) { sum = vw_fma(vw_set1(*x), w, sum); }
inline VW vw_add(VW a, VW b) { return _mm256_add_ps(a, b); }
inline VW vw_mul(VW a, VW b) { return _mm256_mul_ps(a, b); }

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"
#include "ops/matmul/sum16-inl.h"

namespace cyb {
namespace {

// q8, many rows: w + 128 = 16 · high + low, two products of codes of at most 15.
struct HalvesQ8 : Expanded<Lanes8, CodesQ8, Sum16, 4> {
  static constexpr int64_t kBlockBytes = 512;
  static void expand(const uint8_t* p, bool half, uint8_t* out, float* scale) {
    const VI mask = _mm256_set1_epi8(15);
    CodesQ8::each(
        p, half, [&](int j, VI w) __attribute__((always_inline)) {
          VI* to = reinterpret_cast<VI*>(out + 64 * j);
          _mm256_store_si256(to, _mm256_and_si256(w, mask));
          _mm256_store_si256(to + 1, _mm256_and_si256(_mm256_srli_epi16(w, 4), mask));
        });
    v8_store(scale, CodesQ8::scale(p));
  }
  template <int ROWS>
  static CYB_INLINE void block(const uint8_t* codes, const float* scale, const RowBlocks<ROWS>& x,
                               F (&acc)[ROWS]) {
    VI low[ROWS], high[ROWS];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const VI a = vi_load(codes + 64 * j), b = vi_load(codes + 64 * j + 32);
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) {
        const VI xx = broadcast4(x[m].q + 4 * j);
        low[m] = j == 0 ? Sum16::first(a, xx, 0) : Sum16::add(low[m], a, xx);
        high[m] = j == 0 ? Sum16::first(b, xx, 0) : Sum16::add(high[m], b, xx);
      }
    }
    const V8 s = v8_load(scale);
#pragma GCC unroll 4
    for (int m = 0; m < ROWS; m++) {
      const VI d = _mm256_add_epi32(_mm256_madd_epi16(high[m], _mm256_set1_epi16(16)),
                                    Sum16::get(low[m], x[m].neg128));
      acc[m] = add(acc[m], d, x[m].scale, s);
    }
  }
};

}  // namespace

const MatmulKernels matmul_kernels_avx2 = {
    Isa::avx2,
    quantize_row,
    {nullptr, nullptr, q8_products<CodesQ8, DotQ8, ManyRows<HalvesQ8>>,
     q8_products<CodesQ4, DotQ4, ManyRows<Expanded<Lanes8, CodesQ4, Sum16, 6>>>,
     q8_products<CodesTernary, DotTernary, ManyRows<Expanded<Lanes8, CodesTernary, Sum16, 6>>>},
    {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>, f32_acts<ExpandQ4>,
     f32_acts<ExpandTernary>},
    dense};

}  // namespace cyb
