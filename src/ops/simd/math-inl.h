// SPDX-License-Identifier: Apache-2.0
// exp, tanh, erf and their relatives on sixteen lanes: one definition for every kernel and instruction set.
// The polynomials are minimax fits; the tests of activations and attention hold them to bounds in ulps.
#pragma once

#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

CYB_INLINE Vec vmax(Vec a, Vec b) { return at_least(a, b); }  // b only where it is larger: keeps a NaN of a

// (e^r - 1 - r) / r² for |r| <= ln(2)/2.
CYB_INLINE Vec exp_tail(Vec r) {
  Vec p = set1(0.0013814466074109077f);
  p = fma(p, r, set1(0.008368780836462975f));
  p = fma(p, r, set1(0.04166839271783829f));
  p = fma(p, r, set1(0.1666651964187622f));
  return fma(p, r, set1(0.4999999403953552f));
}

// e^x = p · 2^n, n the integer nearest to log2(e) · x: returns p, and in *t n as what scales by powers takes
// it, in the low bits.
CYB_INLINE Vec exp_fraction(Vec x, Vec* t) {
  const Vec magic = set1(12582912.0f);  // 1.5·2^23: adding it rounds to an integer
  *t = fma(x, set1(1.44269504088896341f), magic);
  const Vec n = *t - magic;
  Vec r = fnma(n, set1(0.693147182464599609f), x);
  r = fnma(n, set1(-1.90465432e-9f), r);
  return fma(r * r, exp_tail(r), r) + set1(1.0f);
}

// e^x, within 1 ulp: exactly 1 at 0, 0 at -inf, inf above the range, NaN for NaN.
CYB_INLINE Vec exp(Vec x) {
  x = at_most(at_least(x, set1(-104.0f)), set1(89.0f));
  Vec t;
  const Vec p = exp_fraction(x, &t);
  return scale_by_power(p, t);
}
// The same for |x| <= 86, and anything for NaN.
CYB_INLINE Vec exp_small(Vec x) {
  Vec t;
  const Vec p = exp_fraction(x, &t);
  return scale_by_small_power(p, t);
}

// The same for 2^x.
CYB_INLINE Vec exp2_fraction(Vec x, Vec* t) {
  const Vec magic = set1(12582912.0f);
  *t = x + magic;
  const Vec r = x - (*t - magic);
  Vec p = set1(0.0001535336341476068f);
  p = fma(p, r, set1(0.0013398873852565885f));
  p = fma(p, r, set1(0.00961843691766262f));
  p = fma(p, r, set1(0.055503323674201965f));
  p = fma(p, r, set1(0.24022647738456726f));
  p = fma(p, r, set1(0.6931471824645996f));
  return fma(p, r, set1(1.0f));
}
// 2^x for x <= 0, within 1 ulp: exactly 1 at 0, 0 at -inf, NaN for NaN. A third less work than exp.
CYB_INLINE Vec exp2_negative(Vec x) {
  Vec t;
  const Vec p = exp2_fraction(at_least(x, set1(-150.0f)), &t);
  return scale_by_power(p, t);
}

// e^x within [-86, 88], outside of it that of the nearer end; anything for NaN. Half the work of exp: for
// divisors 1 + e^x, where what lies beyond does not show.
CYB_INLINE Vec exp_bounded(Vec x) {
  x = bounded(x, -86.0f, 88.0f);
  Vec t;
  const Vec p = exp_fraction(x, &t);
  return add_exponent(p, t);
}

// e^x - 1 without cancellation near 0.
CYB_INLINE Vec expm1(Vec x) {
  const Vec near = fma(x * x, exp_tail(x), x);
  return if_less(abs(x), set1(0.34657359f), near, exp(x) - set1(1.0f));
}

CYB_INLINE Vec tanh(Vec x) {
  const Vec a = abs(x);
  const Vec z = x * x;
  Vec p = set1(0.0021475402172654867f);
  p = fma(p, z, set1(-0.008182678371667862f));
  p = fma(p, z, set1(0.021702969446778297f));
  p = fma(p, z, set1(-0.05394720286130905f));
  p = fma(p, z, set1(0.13333210349082947f));
  p = fma(p, z, set1(-0.3333333134651184f));
  const Vec near = fma(x * z, p, x);
  // Beyond 10 the result is 1. A NaN takes the near side, which keeps it.
  const Vec b = at_most(a, set1(10.0f));
  const Vec far = set1(1.0f) - set1(2.0f) / (exp_small(b + b) + set1(1.0f));
  return if_less(set1(0.625f), a, copy_sign(far, x), near);
}

CYB_INLINE Vec erf(Vec x) {
  const Vec a = abs(x);
  const Vec z = x * x;
  Vec p = set1(-9.68013955571223e-06f);
  p = fma(p, z, set1(0.00011270545655861497f));
  p = fma(p, z, set1(-0.0008484711870551109f));
  p = fma(p, z, set1(0.005221074912697077f));
  p = fma(p, z, set1(-0.02686544507741928f));
  p = fma(p, z, set1(0.11283782869577408f));
  p = fma(p, z, set1(-0.37612637877464294f));
  p = fma(p, z, set1(0.128379167095512574f));  // 2/√π - 1
  const Vec near = fma(x, p, x);
  const Vec b = at_most(a, set1(4.0f));  // log(1 - erf) on [1, 4]; beyond, erf is 1
  Vec q = set1(0.00018557399744167924f);
  q = fma(q, b, set1(-0.002939607249572873f));
  q = fma(q, b, set1(0.02180531807243824f));
  q = fma(q, b, set1(-0.10303736478090286f));
  q = fma(q, b, set1(-0.6382256746292114f));
  q = fma(q, b, set1(-1.1270400285720825f));
  q = fma(q, b, set1(-0.00035371966077946126f));
  const Vec far = copy_sign(set1(1.0f) - exp_small(q), x);
  return if_less(set1(1.0f), a, far, near);  // a NaN is kept by the near side
}

// x·Φ(x), Φ the normal distribution, as max(x, 0) − |x|·Φ(−|x|). log2 Φ(−a) is a polynomial on [0, 8], and Φ
// within 7e-8, half an ulp of 1; relative to the result 1e-6 at −2, 2e-5 at −3, 2e-3 at −5. Below −8 it stays
// at −5e-15.
CYB_INLINE Vec gelu_erf(Vec x) {
  const Vec a = at_most(abs(x), set1(8.0f));
  Vec p = set1(-9.268646294913196e-07f);
  p = fma(p, a, set1(1.703734051261563e-05f));
  p = fma(p, a, set1(-8.516722300555557e-05f));
  p = fma(p, a, set1(-0.00036267450195737183f));
  p = fma(p, a, set1(0.007327612489461899f));
  p = fma(p, a, set1(-0.052653517574071884f));
  p = fma(p, a, set1(-0.459166020154953f));
  p = fma(p, a, set1(-1.1511088609695435f));
  p = fma(p, a, set1(-1.0f));
  Vec t;
  p = exp2_fraction(p, &t);
  return fnma(a, add_exponent(p, t), at_least(x, set1(0.0f)));
}

CYB_INLINE Vec sigmoid(Vec x) { return set1(1.0f) / (set1(1.0f) + exp(neg(x))); }

// log(1 + u) for 0 <= u <= 1, as 2·artanh(u / (2 + u)).
CYB_INLINE Vec log1p_unit(Vec u) {
  const Vec s = u / (u + set1(2.0f));
  const Vec z = s * s;
  Vec p = set1(0.24300934374332428f);
  p = fma(p, z, set1(0.21427658200263977f));
  p = fma(p, z, set1(0.2861688435077667f));
  p = fma(p, z, set1(0.3999887704849243f));
  p = fma(p, z, set1(0.6666667461395264f));
  return fma(s * z, p, s + s);
}

// Natural logarithm: −inf of 0, NaN below.
CYB_INLINE Vec log(Vec x) {
  const Vec tiny = set1(0x1p-126f), zero = set1(0.0f), huge = set1(3.4028235e38f);
  // Below the normal range, and what is no positive number, aside.
  const Vec scaled = if_less(x, tiny, x * set1(0x1p25f), x);
  const Vec safe = if_less(zero, scaled, if_less(huge, scaled, set1(1.0f), scaled), set1(1.0f));
  Vec m, e;
  split_power(safe, &m, &e);
  e = e - if_less(x, tiny, set1(25.0f), zero);
  const Vec r = fma(e, set1(-2.12194440e-4f), log1p_unit(m - set1(1.0f)));
  const Vec y = fma(e, set1(0.693359375f), r);
  const Vec nan = x + set1(__builtin_nanf(""));
  // 0, then positive numbers up to infinity; the rest, NaN among it, is none.
  return if_equal(x, zero, set1(-__builtin_inff()), if_less(zero, x, if_less(huge, x, x, y), nan));
}

// x − q·π/2 for the nearest q, |x| below kTurns; q mod 4 in `quadrant` as 0, 1, 2 or 3.
inline constexpr float kTurns = 65536.0f;
CYB_INLINE Vec reduce_turn(Vec x, Vec* quadrant) {
  const Vec magic = set1(12582912.0f);
  const Vec q = fma(x, set1(0.63661977236758134f), magic) - magic;
  Vec r = fnma(q, set1(1.57079637050628662109375f), x);
  r = fnma(q, set1(-4.37113900018624283e-8f), r);
  r = fnma(q, set1(-1.71512451e-15f), r);
  const Vec fours = (fma(q, set1(0.25f), set1(-0.375f)) + magic) - magic;
  *quadrant = fnma(fours, set1(4.0f), q);
  return r;
}
// sin and cos for |r| <= π/4.
CYB_INLINE Vec sin_near(Vec r) {
  const Vec z = r * r;
  Vec p = set1(-1.9515295891e-4f);
  p = fma(p, z, set1(8.3321608736e-3f));
  p = fma(p, z, set1(-1.6666654611e-1f));
  return fma(r * z, p, r);
}
CYB_INLINE Vec cos_near(Vec r) {
  const Vec z = r * r;
  Vec p = set1(2.443315711809948e-5f);
  p = fma(p, z, set1(-1.388731625493765e-3f));
  p = fma(p, z, set1(4.166664568298827e-2f));
  return fma(z * z, p, fma(z, set1(-0.5f), set1(1.0f)));
}
CYB_INLINE Vec by_quadrant(Vec q, Vec s, Vec c) {
  return if_less(q, set1(1.5f), if_less(q, set1(0.5f), s, c), if_less(q, set1(2.5f), neg(s), neg(c)));
}
// |x| below kTurns; an absolute error of about 1e-7.
CYB_INLINE Vec sin(Vec x) {
  Vec q;
  const Vec r = reduce_turn(x, &q);
  return by_quadrant(q, sin_near(r), cos_near(r));
}
CYB_INLINE Vec cos(Vec x) {
  Vec q;
  const Vec r = reduce_turn(x, &q);
  return by_quadrant(q, cos_near(r), neg(sin_near(r)));
}

CYB_INLINE Vec softplus(Vec x) {  // log(1 + e^x)
  return at_least(x, set1(0.0f)) + log1p_unit(exp(neg(abs(x))));
}

// c·tanh(x / c).
CYB_INLINE Vec soft_cap(Vec x, Vec c) { return tanh(x / c) * c; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
