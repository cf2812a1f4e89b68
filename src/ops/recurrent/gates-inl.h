// SPDX-License-Identifier: Apache-2.0
// gates.h on sixteen lanes.
#pragma once

#include "ops/recurrent/gates.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// p(x²)·x / q(x²), the polynomials by Horner's rule from the highest coefficient: Eigen's approximations of
// tanh and of the logistic function (Eigen/src/Core/MathFunctionsImpl.h), clamped where they leave f32.
template <int P, int Q>
CYB_INLINE Vec rational(Vec x, const float (&p)[P], const float (&q)[Q]) {
  const Vec square = x * x;
  Vec above = set1(p[0]), below = set1(q[0]);
  for (int i = 1; i < P; ++i) above = fma(above, square, set1(p[i]));
  for (int i = 1; i < Q; ++i) below = fma(below, square, set1(q[i]));
  return above * x / below;
}

CYB_INLINE Vec limited(Vec x, float limit) {
  const Vec high = set1(limit), low = set1(-limit);
  x = if_less(high, x, high, x);
  return if_less(x, low, low, x);
}

static Vec rational_tanh(Vec x) {
  static constexpr float p[] = {-2.76076847742355e-16f, 2.00018790482477e-13f, -8.60467152213735e-11f,
                                5.12229709037114e-08f,  1.48572235717979e-05f, 6.37261928875436e-04f,
                                4.89352455891786e-03f};
  static constexpr float q[] = {1.19825839466702e-06f, 1.18534705686654e-04f, 2.26843463243900e-03f,
                                4.89352518554385e-03f};
  return rational(limited(x, 9.0f), p, q);
}

static Vec rational_sigmoid(Vec x) {
  static constexpr float p[] = {4.37031012579801e-11f, 1.15627324459942e-07f, 6.08574864600143e-05f,
                                8.51377133304701e-03f, 2.48287947061529e-01f};
  static constexpr float q[] = {6.10247389755681e-13f, 5.76102136993427e-09f, 6.29106785017040e-06f,
                                1.70198817374094e-03f, 1.16817656904453e-01f, 9.93151921023180e-01f};
  return rational(limited(x, 18.0f), p, q) + set1(0.5f);
}

template <int ROWS>
CYB_INLINE void panel_rows(const PanelArgs& a, int64_t row) {
  constexpr int kVecs = kStateColumns / 16;
  constexpr int64_t kDepth = 256;  // of one chain
  Vec total[ROWS][kVecs];
  CYB_UNROLL for (int r = 0; r < ROWS; ++r) CYB_UNROLL for (int v = 0; v < kVecs; ++v) total[r][v] =
      set1(0.0f);
  for (int64_t begin = 0; begin < a.k; begin += kDepth) {
    const int64_t end = a.k - begin < kDepth ? a.k : begin + kDepth;
    Vec acc[ROWS][kVecs];
    CYB_UNROLL for (int r = 0; r < ROWS; ++r) CYB_UNROLL for (int v = 0; v < kVecs; ++v) acc[r][v] =
        set1(0.0f);
    for (int64_t k = begin; k < end; ++k) CYB_UNROLL for (int r = 0; r < ROWS; ++r) {
        const Vec x = set1(a.x[(row + r) * a.x_row + k]);
        CYB_UNROLL for (int v = 0; v < kVecs; ++v) acc[r][v] =
            fma(x, load(a.panel + k * kStateColumns + 16 * v), acc[r][v]);
      }
    CYB_UNROLL for (int r = 0; r < ROWS; ++r) CYB_UNROLL for (int v = 0; v < kVecs; ++v) total[r][v] =
        total[r][v] + acc[r][v];
  }
  CYB_UNROLL for (int r = 0; r < ROWS; ++r) for (int v = 0; v < kVecs && 16 * v < a.count; ++v) {
    const int64_t left = a.count - 16 * v;
    Vec y = total[r][v];
    if (a.bias) y = y + load_first(a.bias + 16 * v, left);
    store_first(a.y + (row + r) * a.y_row + 16 * v, y, left);
  }
}

static void state_panel(const PanelArgs& a) {
  int64_t row = 0;
  for (; row + 2 <= a.rows; row += 2) panel_rows<2>(a, row);
  if (row < a.rows) panel_rows<1>(a, row);
}

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
    case GateKind::rational_sigmoid:
      return rational_sigmoid(x);
    case GateKind::rational_tanh:
      return rational_tanh(x);
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
    const Vec v = load_first(a.input + at, left) + load_first(a.recurrent + at, left);
    return a.bias_w ? v + (load_first(a.bias_w + at, left) + load_first(a.bias_r + at, left)) : v;
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
  return {state_panel, lstm_gates, gru_reset_gates, gru_output_gates, gru_gates, rnn_gates};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
