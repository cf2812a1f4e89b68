// SPDX-License-Identifier: Apache-2.0
// activation.h on sixteen lanes.
#pragma once

#include "ops/activation/activation.h"
#include "ops/activation/apply-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

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
      const Vec part = set1(1.0f) / all;  // at least 2^-k for a row of 2^k: normal
      for (int64_t i = 0; i < a.n; i += 16) store_first(y + i, load_first(y + i, a.n - i) * part, a.n - i);
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
      const Vec part = set1(1.0f) / total;
      for (int64_t k = 0; k < a.n; ++k)
        store_first(y + k * a.inner, load_first(y + k * a.inner, width) * part, width);
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
