// SPDX-License-Identifier: Apache-2.0
// integer_avx2.cc's tile by vectors of 512 bits, for AVX-512 without VNNI.
#include <immintrin.h>

#include <cstring>

#include "ops/quant/integer.h"

// GCC 12 warns of its own _mm512_undefined_*.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace cyb {
namespace {

// Vector v holds columns 8v … 8v + 8 of the panel, of each two sums, neighbours.
constexpr int kVectors = kIntColumns / 8;

template <int ROWS>
inline void tile_rows(const uint8_t* a, int64_t stride, const int8_t* panel, int64_t groups, int32_t* sums) {
  __m512i acc[ROWS][kVectors];
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) acc[i][v] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g++) {
    const auto* p = reinterpret_cast<const __m256i*>(panel + g * 128);
    __m512i b[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) b[v] = _mm512_cvtepi8_epi16(_mm256_loadu_si256(p + v));
#pragma GCC unroll 4
    for (int i = 0; i < ROWS; i++) {
      int32_t four;
      std::memcpy(&four, a + i * stride + 4 * g, sizeof four);
      const __m512i x = _mm512_cvtepu8_epi16(_mm256_set1_epi32(four));
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; v++) acc[i][v] = _mm512_add_epi32(acc[i][v], _mm512_madd_epi16(x, b[v]));
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; v++) {
      const __m512i both = _mm512_add_epi32(acc[i][v], _mm512_srli_epi64(acc[i][v], 32));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums + i * kIntColumns + 8 * v),
                          _mm512_cvtepi64_epi32(both));
    }
}

void tile(const uint8_t* a, int64_t stride, int rows, const int8_t* panel, int64_t groups, int32_t* sums) {
  int i = 0;
  for (; i + 4 <= rows; i += 4) tile_rows<4>(a + i * stride, stride, panel, groups, sums + i * kIntColumns);
  for (; i < rows; i++) tile_rows<1>(a + i * stride, stride, panel, groups, sums + i * kIntColumns);
}

}  // namespace

extern const IntKernels kInt_avx512;
const IntKernels kInt_avx512 = {tile};

}  // namespace cyb
