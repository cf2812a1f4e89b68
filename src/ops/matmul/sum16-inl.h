// SPDX-License-Identifier: Apache-2.0
// Integer products without dot products of bytes: pairs of products in 16 bits (vpmaddubsw), for AVX2 and for
// AVX-512 without VNNI. Included after simd_avx2-inl.h.
#pragma once

#include "ops/matmul/codes_x86-inl.h"

namespace cyb {
namespace {

// Stops GCC from turning a chain of integer sums into a tree, which needs more registers than there are.
template <class V>
CYB_INLINE void keep(V& v) {
  asm("" : "+v"(v));
}

// Codes of at most 15: 16 bits hold a whole block's sums, eight pairs of 15 · 127.
struct Sum16 {
  static constexpr int kChains = 1;  // products do not wait for each other here
  static VI zero(int32_t) { return _mm256_setzero_si256(); }
  static VI first(VI w, VI x, int32_t) { return _mm256_maddubs_epi16(w, x); }
  static VI add(VI sum, VI w, VI x) {
    VI s = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x));
    keep(s);
    return s;
  }
  static VI get(VI sum, int32_t offset) {
    return _mm256_add_epi32(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)), _mm256_set1_epi32(offset));
  }
};

// Few rows of q8: |w| · ±x, pairs reach 128 · 127 · 2, which 16 bits hold.
template <int ROWS>
struct DotQ8 {
  static CYB_INLINE void dot(const uint8_t* p, bool, const Q8Block* const (&x)[ROWS], VI (&d)[ROWS]) {
    const VI ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      const VI w = vi_load(p + 16 + 32 * j), magnitude = _mm256_abs_epi8(w);
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) {
        const VI pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(broadcast4(x[m]->q + 4 * j), w));
        const VI four = _mm256_madd_epi16(pairs, ones);
        d[m] = j == 0 ? four : _mm256_add_epi32(d[m], four);
        keep(d[m]);
      }
    }
  }
};

template <int ROWS>
using DotQ4 = FewRows<CodesQ4, Sum16, ROWS>;
template <int ROWS>
using DotTernary = FewRows<CodesTernary, Sum16, ROWS>;

}  // namespace
}  // namespace cyb
