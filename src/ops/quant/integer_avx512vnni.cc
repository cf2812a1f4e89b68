// SPDX-License-Identifier: Apache-2.0
// The tile of integer products with VNNI: each lane adds four products of a byte of the row and one of the
// panel.
#include <immintrin.h>

#include <cstring>

#include "ops/quant/integer.h"

namespace cyb {
namespace {

template <int ROWS>
inline void tile_rows(const uint8_t* a, int64_t stride, const int8_t* panel, int64_t groups, int32_t* sums) {
  __m512i acc[ROWS][2];
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; i++) acc[i][0] = acc[i][1] = _mm512_setzero_si512();
  for (int64_t g = 0; g < groups; g++) {
    const __m512i b0 = _mm512_loadu_si512(panel + g * 128), b1 = _mm512_loadu_si512(panel + g * 128 + 64);
#pragma GCC unroll 8
    for (int i = 0; i < ROWS; i++) {
      int32_t four;
      std::memcpy(&four, a + i * stride + 4 * g, sizeof four);
      const __m512i x = _mm512_set1_epi32(four);
      acc[i][0] = _mm512_dpbusd_epi32(acc[i][0], x, b0);
      acc[i][1] = _mm512_dpbusd_epi32(acc[i][1], x, b1);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < ROWS; i++) {
    _mm512_storeu_si512(sums + i * kIntColumns, acc[i][0]);
    _mm512_storeu_si512(sums + i * kIntColumns + 16, acc[i][1]);
  }
}

void tile(const uint8_t* a, int64_t stride, int rows, const int8_t* panel, int64_t groups, int32_t* sums) {
  if (rows == 8) return tile_rows<8>(a, stride, panel, groups, sums);
  if (rows >= 4) {
    tile_rows<4>(a, stride, panel, groups, sums);
    a += 4 * stride, sums += 4 * kIntColumns, rows -= 4;
  }
  if (rows >= 2) {
    tile_rows<2>(a, stride, panel, groups, sums);
    a += 2 * stride, sums += 2 * kIntColumns, rows -= 2;
  }
  if (rows > 0) tile_rows<1>(a, stride, panel, groups, sums);
}

}  // namespace

extern const IntKernels kInt_avx512vnni;
const IntKernels kInt_avx512vnni = {tile};

}  // namespace cyb
