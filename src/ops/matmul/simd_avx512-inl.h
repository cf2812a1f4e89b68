// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 floats and 64 bytes with AVX-512 (F, BW, VL, DQ), beside the narrower ones.
#pragma once

#include "ops/matmul/simd_avx2-inl.h"

// GCC 12 warns of its own _mm512_undefined_*.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace cyb {
namespace {

using VW = __m512;
constexpr int kWide = 16;
inline VW vw_zero() { return _mm512_setzero_ps(); }
inline VW vw_load(const float* p) { return _mm512_loadu_ps(p); }
inline void vw_store(float* p, VW v) { _mm512_storeu_ps(p, v); }
inline VW vw_set1(float v) { return _mm512_set1_ps(v); }
inline VW vw_fma(VW a, VW b, VW c) { return _mm512_fmadd_ps(a, b, c); }
// sum = fma(w, *x in all lanes, sum), by one instruction.
inline void vw_fma_broadcast(VW& sum, VW w, const float* x) {
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*x));
}
inline VW vw_add(VW a, VW b) { return _mm512_add_ps(a, b); }
inline VW vw_mul(VW a, VW b) { return _mm512_mul_ps(a, b); }

// Lanes8 (simd_avx2-inl.h) of two groups of 8 rows of W.
struct Lanes16 {
  using F = __m512;
  using I = __m512i;
  static constexpr int64_t kLanes = 16;
  static F zero() { return _mm512_setzero_ps(); }
  static F load(const float* p) { return _mm512_load_ps(p); }
  static void store(float* p, F v) { _mm512_store_ps(p, v); }
  static F set1(float v) { return _mm512_set1_ps(v); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F to_f32(I v) { return _mm512_cvtepi32_ps(v); }
  static I codes(const uint8_t* p) { return _mm512_load_si512(p); }
  static I broadcast(int32_t v) { return _mm512_set1_epi32(v); }
};

}  // namespace
}  // namespace cyb
