// SPDX-License-Identifier: Apache-2.0
// Sixteen float lanes, the unit in which the vector kernels of attention, norms and activations are written.
// Every instruction set cuts the same sixteen lanes its own way, so that reductions over them have one order
// and results have the same bits everywhere. Included once by each file NAME_<isa>.cc, which defines CYB_SIMD
// (the namespace of that instruction set) and, except for plain C++, CYB_SIMD_TARGET (the Highway target
// expected).
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef CYB_SIMD
#error "define CYB_SIMD before including vec-inl.h"
#endif

// The plain form defines results and is not meant to be fast: inlining and unrolling it would cost a minute
// of compilation a file.
#ifdef CYB_SIMD_TARGET
#define CYB_INLINE static inline __attribute__((always_inline, unused))
#define CYB_LAMBDA inline __attribute__((always_inline))  // for call operators of step objects
#define CYB_INNER __attribute__((always_inline))          // for lambdas
#if defined(__clang__)
#define CYB_UNROLL _Pragma("unroll")
#else
#define CYB_UNROLL _Pragma("GCC unroll 16")
#endif
#else
#define CYB_INLINE static __attribute__((unused, noinline))
#define CYB_LAMBDA inline
#define CYB_INNER
#define CYB_UNROLL
#endif

#ifdef CYB_SIMD_TARGET
#include "ops/simd/vec_highway-inl.h"
#else
#include "ops/simd/vec_plain-inl.h"
#endif

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE Vec operator+(Vec a, Vec b) { return add(a, b); }
CYB_INLINE Vec operator-(Vec a, Vec b) { return sub(a, b); }
CYB_INLINE Vec operator*(Vec a, Vec b) { return mul(a, b); }
CYB_INLINE Vec operator/(Vec a, Vec b) { return div(a, b); }

// The first n of sixteen lanes from memory, the rest `fill`; and back. Nothing beyond n is touched.
CYB_INLINE Vec load_first(const float* p, int64_t n, float fill = 0.0f) {
  if (n >= 16) return load(p);
#ifdef CYB_MASKED_MEMORY
  return masked_load(p, n, fill);
#else
  alignas(64) float lanes[16];
  for (int i = 0; i < 16; ++i) lanes[i] = i < n ? p[i] : fill;
  return load(lanes);
#endif
}
CYB_INLINE void store_first(float* p, Vec x, int64_t n) {
  if (n >= 16) return store(p, x);
#ifdef CYB_MASKED_MEMORY
  masked_store(p, x, n);
#else
  alignas(64) float lanes[16];
  store(lanes, x);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
#endif
}

// Overloads by element, for kernels that are written once for both KV types.
CYB_INLINE Vec load16(const float* p) { return load(p); }
CYB_INLINE Vec load16(const uint16_t* p) { return load_half(p); }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
