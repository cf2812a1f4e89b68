// SPDX-License-Identifier: Apache-2.0
// The tile of integer products with AVX2: bytes become 16-bit integers, whose pairs of products are exact;
// the shorter way over vpmaddubsw would saturate.
#include <immintrin.h>

#include <cstring>

#include "ops/quant/integer.h"

namespace cyb {
namespace {

// ROWS rows times 8 columns of the panel, from column 8·part on.
template <int ROWS>
inline void tile_part(const uint8_t* a, int64_t stride, const int8_t* panel, int64_t groups, int part,
                      int32_t* sums) {
  __m256i acc[ROWS][2];
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = _mm256_setzero_si256();
  for (int64_t g = 0; g < groups; g++) {
    const auto* p = reinterpret_cast<const __m128i*>(panel + g * 128 + part * 32);
    const __m256i b0 = _mm256_cvtepi8_epi16(_mm_loadu_si128(p)),
                  b1 = _mm256_cvtepi8_epi16(_mm_loadu_si128(p + 1));
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
      int32_t four;
      std::memcpy(&four, a + i * stride + 4 * g, sizeof four);
      const __m256i x = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
      acc[i][0] = _mm256_add_epi32(acc[i][0], _mm256_madd_epi16(x, b0));
      acc[i][1] = _mm256_add_epi32(acc[i][1], _mm256_madd_epi16(x, b1));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++) {
    const __m256i pairs = _mm256_hadd_epi32(acc[i][0], acc[i][1]);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i * kIntColumns + part * 8),
                        _mm256_permute4x64_epi64(pairs, 0xD8));
  }
}

void tile(const uint8_t* a, int64_t stride, int rows, const int8_t* panel, int64_t groups, int32_t* sums) {
  for (int part = 0; part < 4; part++) {
    int i = 0;
    for (; i + 4 <= rows; i += 4)
      tile_part<4>(a + i * stride, stride, panel, groups, part, sums + i * kIntColumns);
    for (; i < rows; i++) tile_part<1>(a + i * stride, stride, panel, groups, part, sums + i * kIntColumns);
  }
}

}  // namespace

extern const IntKernels kInt_avx2;
const IntKernels kInt_avx2 = {tile};

}  // namespace cyb
