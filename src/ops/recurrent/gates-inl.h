// SPDX-License-Identifier: Apache-2.0
// gates.h on sixteen lanes.
#pragma once

#include "ops/recurrent/gates.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE Vec gate_function(const GateFunction& f, Vec x) {
  const Vec zero = set1(0.0f), one = set1(1.0f), a = set1(f.alpha), b = set1(f.beta);
  switch (f.kind) {
    case GateKind::sigmoid:
      return sigmoid(x);
    case GateKind::tanh:
      return tanh(x);
    case GateKind::relu:
      return if_less(zero, x, x, zero);
    case GateKind::affine:
      return a * x + b;
    case GateKind::leaky_relu:
      return if_less(x, zero, a * x, x);
    case GateKind::thresholded_relu:
      return if_less(a, x, x, zero);
    case GateKind::scaled_tanh:
      return a * tanh(b * x);
    case GateKind::hard_sigmoid: {
      const Vec v = a * x + b;
      const Vec low = if_less(zero, v, v, zero);
      return if_less(low, one, low, one);
    }
    case GateKind::elu:
      return if_less(x, zero, a * expm1(x), x);
    case GateKind::softsign:
      return x / (one + abs(x));
    case GateKind::softplus:
      return softplus(x);
  }
  return x;
}

CYB_INLINE Vec clipped(const GateArgs& a, Vec x) {
  if (!(a.clip > 0)) return x;
  const Vec high = set1(a.clip), low = set1(-a.clip);
  x = if_less(high, x, high, x);
  return if_less(x, low, low, x);
}

// Vectors of `end − begin` units, the last one partial: f(first unit, how many are left).
struct UnitSum {
  const GateArgs& a;
  int64_t i, left;
  CYB_LAMBDA Vec operator()(int64_t gate) const {
    const int64_t at = gate * a.hidden + i;
    return load_first(a.input + at, left) + load_first(a.recurrent + at, left);
  }
};

static void lstm_gates(const GateArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) {
    const int64_t left = end - i;
    const UnitSum sum{a, i, left};
    Vec c = load_first(a.c + i, left);
    Vec in = sum(0), out = sum(1), forget = sum(2);
    if (a.peepholes) {
      in = in + load_first(a.peepholes + i, left) * c;
      forget = forget + load_first(a.peepholes + 2 * a.hidden + i, left) * c;
    }
    in = gate_function(a.f[0], clipped(a, in));
    forget = a.input_forget ? set1(1.0f) - in : gate_function(a.f[0], clipped(a, forget));
    c = forget * c + in * gate_function(a.f[1], clipped(a, sum(3)));
    if (a.peepholes) out = out + load_first(a.peepholes + a.hidden + i, left) * c;
    out = gate_function(a.f[0], clipped(a, out));
    store_first(a.c + i, c, left);
    store_first(a.h + i, out * gate_function(a.f[2], c), left);
  }
}

static void gru_reset_gates(const GateArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) {
    const int64_t left = end - i;
    const UnitSum sum{a, i, left};
    const Vec reset = gate_function(a.f[0], clipped(a, sum(1)));
    store_first(a.update + i, gate_function(a.f[0], clipped(a, sum(0))), left);
    store_first(a.scaled + i, reset * load_first(a.h_before + i, left), left);
  }
}

CYB_INLINE void gru_mix(const GateArgs& a, int64_t i, int64_t left, Vec z, Vec n) {
  store_first(a.h + i, (set1(1.0f) - z) * n + z * load_first(a.h_before + i, left), left);
}

static void gru_output_gates(const GateArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) {
    const int64_t left = end - i;
    const UnitSum sum{a, i, left};
    gru_mix(a, i, left, load_first(a.update + i, left), gate_function(a.f[1], clipped(a, sum(2))));
  }
}

static void gru_gates(const GateArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) {
    const int64_t left = end - i;
    const UnitSum sum{a, i, left};
    const Vec z = gate_function(a.f[0], clipped(a, sum(0))),
              reset = gate_function(a.f[0], clipped(a, sum(1)));
    const int64_t at = 2 * a.hidden + i;
    const Vec n = load_first(a.input + at, left) + reset * load_first(a.recurrent + at, left);
    gru_mix(a, i, left, z, gate_function(a.f[1], clipped(a, n)));
  }
}

static void rnn_gates(const GateArgs& a, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i += 16) {
    const UnitSum sum{a, i, end - i};
    store_first(a.h + i, gate_function(a.f[0], clipped(a, sum(0))), end - i);
  }
}

constexpr GateKernels make_gate_kernels() {
  return {lstm_gates, gru_reset_gates, gru_output_gates, gru_gates, rnn_gates};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
