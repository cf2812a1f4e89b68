// SPDX-License-Identifier: Apache-2.0
// The vectors of peak-inl.h with AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

// GCC 12 warns of its own _mm512_undefined_*.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace cyb {
namespace {

using Real = __m512;
using Ints = __m512i;
using Codes = __m512i;
inline Real real_set(float x) { return _mm512_set1_ps(x); }
inline Real real_fma(Real a, Real b, Real c) { return _mm512_fmadd_ps(a, b, c); }
inline float real_first(Real a) { return _mm512_cvtss_f32(a); }
inline Ints int_set(int32_t x) { return _mm512_set1_epi32(x); }
inline Codes code_set(int8_t x) { return _mm512_set1_epi8(x); }
inline void hide(Codes& a) { asm volatile("" : "+v"(a)); }
inline int32_t int_first(Ints a) { return _mm512_cvtsi512_si32(a); }

}  // namespace
}  // namespace cyb
