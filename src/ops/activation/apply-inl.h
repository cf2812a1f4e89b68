// SPDX-License-Identifier: Apache-2.0
// One activation of sixteen lanes, for kernels that end in it.
#pragma once

#include "ops/activation/activation.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE Vec clamp(Vec x, float lo, float hi) {
  x = if_less(x, set1(lo), set1(lo), x);
  return if_less(set1(hi), x, set1(hi), x);
}

template <Activation kind>
CYB_INLINE Vec apply(Vec x, Vec alpha, Vec beta) {
  const Vec zero = set1(0.0f), one = set1(1.0f), half = set1(0.5f);
  if constexpr (kind == Activation::identity) return x;
  if constexpr (kind == Activation::relu) return if_less(x, zero, zero, x);
  if constexpr (kind == Activation::relu6) return clamp(x, 0.0f, 6.0f);
  if constexpr (kind == Activation::relu_squared) {
    const Vec r = if_less(x, zero, zero, x);
    return r * r;
  }
  if constexpr (kind == Activation::leaky_relu) return if_less(x, zero, alpha * x, x);
  if constexpr (kind == Activation::elu) return if_less(x, zero, alpha * expm1(x), x);
  if constexpr (kind == Activation::selu) return beta * if_less(x, zero, alpha * expm1(x), x);
  if constexpr (kind == Activation::silu) return x / (one + exp_bounded(neg(x)));
  if constexpr (kind == Activation::gelu_erf) return gelu_erf(x);
  if constexpr (kind == Activation::gelu_tanh) {
    // ½(1 + tanh u) is sigmoid(2u), and that loses nothing far below 0.
    const Vec cube = x * x * x;
    const Vec u = set1(0.79788456080286536f) * fma(set1(0.044715f), cube, x);
    return x / (one + exp_bounded(set1(-2.0f) * u));
  }
  if constexpr (kind == Activation::gelu_quick) return x / (one + exp_bounded(set1(-1.702f) * x));
  if constexpr (kind == Activation::sigmoid) return sigmoid(x);
  if constexpr (kind == Activation::tanh) return tanh(x);
  if constexpr (kind == Activation::softplus) return softplus(x);
  if constexpr (kind == Activation::mish) {
    // tanh(log(1 + e)) = (e² + 2e) / (e² + 2e + 2).
    const Vec e = exp(if_less(set1(20.0f), x, set1(20.0f), x));
    const Vec m = e * (e + set1(2.0f));
    return if_less(set1(20.0f), x, x, x * (m / (m + set1(2.0f))));
  }
  if constexpr (kind == Activation::hard_sigmoid) return clamp(alpha * x + beta, 0.0f, 1.0f);
  if constexpr (kind == Activation::hard_swish) return x * clamp(x / set1(6.0f) + half, 0.0f, 1.0f);
  if constexpr (kind == Activation::exp) return exp(x);
  if constexpr (kind == Activation::expm1) return expm1(x);
  if constexpr (kind == Activation::erf) return erf(x);
  if constexpr (kind == Activation::soft_cap) return soft_cap(x, alpha);
  if constexpr (kind == Activation::clamp) {
    x = if_less(x, alpha, alpha, x);
    return if_less(beta, x, beta, x);
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
