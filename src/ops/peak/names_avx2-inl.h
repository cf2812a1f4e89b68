// SPDX-License-Identifier: Apache-2.0
// The names that peak-inl.h wants, of 256 bits; the including file adds int_dot.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace cyb {
namespace {

using Real = __m256;
using Ints = __m256i;
using Codes = __m256i;
inline Real real_set(float x) { return _mm256_set1_ps(x); }
inline Real real_fma(Real a, Real b, Real c) { return _mm256_fmadd_ps(a, b, c); }
inline float real_first(Real a) { return _mm256_cvtss_f32(a); }
inline Ints int_set(int32_t x) { return _mm256_set1_epi32(x); }
inline Codes code_set(int8_t x) { return _mm256_set1_epi8(x); }
inline void hide(Codes& a) { asm volatile("" : "+x"(a)); }
inline int32_t int_first(Ints a) { return _mm256_extract_epi32(a, 0); }

}  // namespace
}  // namespace cyb
