// SPDX-License-Identifier: Apache-2.0
// The multiply-add rate that an instruction set reaches in registers: the ceiling of f32 products.
#pragma once

#include <chrono>

#include "base/cpu_features.h"
#include "base/thread_pool.h"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace cyb::bench {

inline constexpr int kFmaChains = 12;  // enough for two units of latency 4 … 6

// The sums must stay in registers: every loop over them is unrolled, and the instruction is written out.
#if defined(__x86_64__)
#define CYB_FMA_LOOP(name, isa, V, set1, first, constraint, mnemonic)                  \
  __attribute__((target(isa), noinline)) inline void name(int64_t steps, float* out) { \
    V a[kFmaChains], x = set1(0.999f), y = set1(0.001f);                               \
    _Pragma("GCC unroll 12") for (int j = 0; j < kFmaChains; j++) a[j] = set1(1.0f);   \
    for (int64_t i = 0; i < steps; i++) {                                              \
      _Pragma("GCC unroll 12") for (int j = 0; j < kFmaChains; j++) asm volatile(      \
          mnemonic : "+" constraint(a[j]) : constraint(x), constraint(y));             \
    }                                                                                  \
    _Pragma("GCC unroll 12") for (int j = 0; j < kFmaChains; j++)* out += first(a[j]); \
  }
CYB_FMA_LOOP(fma_loop_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_cvtss_f32, "v",
             "vfmadd213ps %2, %1, %0")
CYB_FMA_LOOP(fma_loop_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_cvtss_f32, "x",
             "vfmadd213ps %2, %1, %0")
#undef CYB_FMA_LOOP
#elif defined(__aarch64__)
__attribute__((noinline)) inline void fma_loop_neon(int64_t steps, float* out) {
  float32x4_t a[kFmaChains], x = vdupq_n_f32(0.999f), y = vdupq_n_f32(0.001f);
#pragma GCC unroll 12
  for (int j = 0; j < kFmaChains; j++) a[j] = vdupq_n_f32(1.0f);
  for (int64_t i = 0; i < steps; i++) {
#pragma GCC unroll 12
    for (int j = 0; j < kFmaChains; j++)
      asm volatile("fmla %0.4s, %1.4s, %2.4s" : "+w"(a[j]) : "w"(x), "w"(y));
  }
#pragma GCC unroll 12
  for (int j = 0; j < kFmaChains; j++) *out += vgetq_lane_f32(a[j], 0);
}
#endif

inline void fma_loop(Isa isa, int64_t steps, float* out) {
#if defined(__x86_64__)
  isa == Isa::avx512 ? fma_loop_avx512(steps, out) : fma_loop_avx2(steps, out);
#elif defined(__aarch64__)
  (void)isa;
  fma_loop_neon(steps, out);
#endif
}

// GFLOP/s of all of the pool's threads, over about 10 ms.
inline double fma_peak(Isa isa, ThreadPool& pool) {
  const int64_t pieces = int64_t{pool.threads()} * 32, steps = 100'000;
  const int lanes = isa == Isa::avx512 ? 16 : isa == Isa::avx2 ? 8 : 4;
  const auto start = std::chrono::steady_clock::now();
  pool.parallel_for(pieces, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) {
      float sink = 0;
      fma_loop(isa, steps / 12, &sink);
      asm volatile("" : : "r"(&sink) : "memory");
    }
  });
  const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return 2e-9 * static_cast<double>(pieces * (steps / 12) * kFmaChains * lanes) / s;
}

}  // namespace cyb::bench
