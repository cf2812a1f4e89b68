// SPDX-License-Identifier: Apache-2.0
// unary.h on sixteen lanes.
#pragma once

#include "ops/elementwise/unary.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

template <UnaryOp op>
CYB_INLINE Vec apply_unary(Vec x, Vec alpha, Vec beta) {
  const Vec zero = set1(0.0f), one = set1(1.0f);
  if constexpr (op == UnaryOp::neg) return neg(x);
  if constexpr (op == UnaryOp::abs) return abs(x);
  if constexpr (op == UnaryOp::reciprocal) return one / x;
  if constexpr (op == UnaryOp::sqrt) return sqrt(x);
  if constexpr (op == UnaryOp::floor) return floor(x);
  if constexpr (op == UnaryOp::ceil) return ceil(x);
  if constexpr (op == UnaryOp::round) return round_even(x);
  if constexpr (op == UnaryOp::sign) return if_less(zero, x, one, if_less(x, zero, set1(-1.0f), x));
  if constexpr (op == UnaryOp::log) return log(x);
  if constexpr (op == UnaryOp::clamp) {
    return at_most(at_least(x, alpha), beta);
  }
  if constexpr (op == UnaryOp::square) return x * x;
  if constexpr (op == UnaryOp::cube) return x * x * x;
  if constexpr (op == UnaryOp::softsign) return x / (one + abs(x));
  if constexpr (op == UnaryOp::sin || op == UnaryOp::cos) {
    const Vec y = op == UnaryOp::sin ? sin(x) : cos(x);
    // Far from 0, and for what is no number, one by one.
    if (reduce_max(if_less(abs(x), set1(kTurns), zero, one)) > 0) {
      alignas(64) float from[16], to[16];
      store(from, x);
      store(to, y);
      for (int i = 0; i < 16; ++i)
        if (!(__builtin_fabsf(from[i]) < kTurns)) {
          const auto v = static_cast<double>(from[i]);
          to[i] = static_cast<float>(op == UnaryOp::sin ? __builtin_sin(v) : __builtin_cos(v));
        }
      return load(to);
    }
    return y;
  }
}

template <UnaryOp op>
__attribute__((noinline)) static void unary_blocks(const float* x, float* y, int64_t n, float alpha,
                                                   float beta) {
  const Vec p = set1(alpha), q = set1(beta);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, apply_unary<op>(load(x + i), p, q));
  // 1 in the lanes beyond: no operator is slow or wrong there.
  if (i < n) store_first(y + i, apply_unary<op>(load_first(x + i, n - i, 1.0f), p, q), n - i);
}

static void run_unary(const UnaryArgs& a, int64_t begin, int64_t end) {
  using Blocks = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);
  static constexpr Blocks kBlocks[] = {
      unary_blocks<UnaryOp::neg>,    unary_blocks<UnaryOp::abs>,   unary_blocks<UnaryOp::reciprocal>,
      unary_blocks<UnaryOp::sqrt>,   unary_blocks<UnaryOp::floor>, unary_blocks<UnaryOp::ceil>,
      unary_blocks<UnaryOp::round>,  unary_blocks<UnaryOp::sign>,  unary_blocks<UnaryOp::log>,
      unary_blocks<UnaryOp::sin>,    unary_blocks<UnaryOp::cos>,   unary_blocks<UnaryOp::clamp>,
      unary_blocks<UnaryOp::square>, unary_blocks<UnaryOp::cube>,  unary_blocks<UnaryOp::softsign>};
  kBlocks[static_cast<int>(a.op)](a.x + begin, a.y + begin, end - begin, a.alpha, a.beta);
}

constexpr UnaryKernels make_unary_kernels() { return {run_unary}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
