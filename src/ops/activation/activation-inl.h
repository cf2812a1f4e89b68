// SPDX-License-Identifier: Apache-2.0
// activation.h on sixteen lanes.
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
  if constexpr (kind == Activation::silu) return x / (one + exp(neg(x)));
  if constexpr (kind == Activation::gelu_erf) return half * x * (one + erf(x * set1(0.70710678118654752f)));
  if constexpr (kind == Activation::gelu_tanh) {
    // ½(1 + tanh u) is sigmoid(2u), and that loses nothing far below 0.
    const Vec cube = x * x * x;
    const Vec u = set1(0.79788456080286536f) * fma(set1(0.044715f), cube, x);
    return x / (one + exp(set1(-2.0f) * u));
  }
  if constexpr (kind == Activation::gelu_quick) return x / (one + exp(set1(-1.702f) * x));
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

// n / 16 blocks. Kept out of line: each activation is compiled once, and everything else is built from
// blocks.
template <Activation kind>
__attribute__((noinline)) static void apply_blocks(const float* x, float* y, int64_t n, float alpha,
                                                   float beta) {
  const Vec p = set1(alpha), q = set1(beta);
  for (int64_t i = 0; i < n; i += 16) store(y + i, apply<kind>(load(x + i), p, q));
}

using Blocks = void (*)(const float* x, float* y, int64_t n, float alpha, float beta);

static Blocks blocks_of(Activation kind) {
  switch (kind) {
#define CYB_CASE(name)   \
  case Activation::name: \
    return apply_blocks<Activation::name>;
    CYB_CASE(identity)
    CYB_CASE(relu)
    CYB_CASE(relu6)
    CYB_CASE(relu_squared)
    CYB_CASE(leaky_relu)
    CYB_CASE(elu)
    CYB_CASE(selu)
    CYB_CASE(silu)
    CYB_CASE(gelu_erf)
    CYB_CASE(gelu_tanh)
    CYB_CASE(gelu_quick)
    CYB_CASE(sigmoid)
    CYB_CASE(tanh)
    CYB_CASE(softplus)
    CYB_CASE(mish)
    CYB_CASE(hard_sigmoid)
    CYB_CASE(hard_swish)
    CYB_CASE(exp)
    CYB_CASE(expm1)
    CYB_CASE(erf)
    CYB_CASE(soft_cap)
    CYB_CASE(clamp)
#undef CYB_CASE
  }
  return apply_blocks<Activation::identity>;
}

static void activate(const ActivationArgs& a, int64_t begin, int64_t end) {
  const Blocks blocks = blocks_of(a.activation);
  const int64_t whole = (end - begin) / 16 * 16;
  blocks(a.x + begin, a.y + begin, whole, a.alpha, a.beta);
  begin += whole;
  if (begin == end) return;
  alignas(64) float lanes[16];
  store(lanes, load_first(a.x + begin, end - begin));
  blocks(lanes, lanes, 16, a.alpha, a.beta);
  store_first(a.y + begin, load(lanes), end - begin);
}

static void gated(const GatedArgs& a, int64_t begin, int64_t end) {
  const Blocks blocks = blocks_of(a.activation);
  constexpr int64_t kPiece = 256;
  alignas(64) float piece[kPiece];
  for (int64_t row = begin; row < end; ++row) {
    const float *p = a.a + row * a.a_stride, *q = a.b + row * a.b_stride;
    float* y = a.y + row * a.y_stride;
    for (int64_t at = 0; at < a.n; at += kPiece) {
      const int64_t n = a.n - at < kPiece ? a.n - at : kPiece, whole = n / 16 * 16;
      blocks(p + at, piece, whole, a.alpha, a.beta);
      if (whole < n) {
        store(piece + whole, load_first(p + at + whole, n - whole));
        blocks(piece + whole, piece + whole, 16, a.alpha, a.beta);
      }
      for (int64_t i = 0; i < n; i += 16)
        store_first(y + at + i, load(piece + i) * load_first(q + at + i, n - i), n - i);
    }
  }
}

static void softmax_rows(const SoftmaxArgs& a, int64_t begin, int64_t end) {
  const float hidden = -__builtin_inff();
  for (int64_t row = begin; row < end; ++row) {
    const float* x = a.x + row * a.x_stride;
    float* y = a.y + row * a.y_stride;
    Vec top = set1(hidden);
    for (int64_t i = 0; i < a.n; i += 16) top = vmax(top, load_first(x + i, a.n - i, hidden));
    const Vec highest = set1(reduce_max(top));
    // Sixteen lanes hold a sum each; pieces of 2^16 elements are added in f64.
    double total = 0;
    for (int64_t from = 0; from < a.n; from += 65536) {
      const int64_t to = a.n - from < 65536 ? a.n : from + 65536;
      Vec sum = set1(0.0f);
      for (int64_t i = from; i < to; i += 16) {
        const Vec e = exp(load_first(x + i, to - i, hidden) - highest);
        if (!a.log) store_first(y + i, e, to - i);
        sum = sum + e;  // lanes beyond the row are e^-inf = 0
      }
      total += static_cast<double>(reduce_add(sum));
    }
    const Vec all = set1(static_cast<float>(total));
    if (a.log) {
      const Vec shift = log(all);
      for (int64_t i = 0; i < a.n; i += 16)
        store_first(y + i, (load_first(x + i, a.n - i) - highest) - shift, a.n - i);
    } else {
      for (int64_t i = 0; i < a.n; i += 16) store_first(y + i, load_first(y + i, a.n - i) / all, a.n - i);
    }
  }
}

static void softmax_columns(const SoftmaxColumnsArgs& a, int64_t begin, int64_t end) {
  const int64_t groups = SoftmaxColumnsArgs::groups_of(a.inner);
  for (int64_t g = begin; g < end; ++g) {
    const int64_t column = g % groups * 16, at = g / groups * a.n * a.inner + column,
                  width = a.inner - column;
    const float* x = a.x + at;
    float* y = a.y + at;
    Vec top = set1(-__builtin_inff());
    for (int64_t k = 0; k < a.n; ++k) top = vmax(top, load_first(x + k * a.inner, width));
    Vec total = set1(0.0f);
    // Long columns are summed in pieces, so that the error does not grow with them.
    for (int64_t from = 0; from < a.n; from += 256) {
      const int64_t to = a.n - from < 256 ? a.n : from + 256;
      Vec sum = set1(0.0f);
      for (int64_t k = from; k < to; ++k) {
        const Vec e = exp(load_first(x + k * a.inner, width) - top);
        if (!a.log) store_first(y + k * a.inner, e, width);
        sum = sum + e;
      }
      total = total + sum;
    }
    if (a.log) {
      const Vec shift = log(total);
      for (int64_t k = 0; k < a.n; ++k)
        store_first(y + k * a.inner, (load_first(x + k * a.inner, width) - top) - shift, width);
    } else {
      for (int64_t k = 0; k < a.n; ++k)
        store_first(y + k * a.inner, load_first(y + k * a.inner, width) / total, width);
    }
  }
}

constexpr ActivationKernels make_activation_kernels() {
  return {activate, gated, softmax_rows, softmax_columns};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
