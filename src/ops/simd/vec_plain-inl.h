// SPDX-License-Identifier: Apache-2.0
// vec-inl.h in plain C++: defines what the others must equal, bit for bit, and runs where they do not.
#pragma once

#include <bit>

#include "tensor/dtype.h"

namespace cyb::CYB_SIMD {

inline constexpr int kParts = 16;

struct Vec {
  float v[16];
};

#define CYB_PARTS for (int i = 0; i < 16; ++i)

CYB_INLINE Vec set1(float x) {
  Vec r;
  CYB_PARTS r.v[i] = x;
  return r;
}
CYB_INLINE Vec load(const float* p) {
  Vec r;
  CYB_PARTS r.v[i] = p[i];
  return r;
}
CYB_INLINE void store(float* p, Vec x) { CYB_PARTS p[i] = x.v[i]; }
CYB_INLINE Vec load_half(const uint16_t* p) {
  Vec r;
  CYB_PARTS r.v[i] = f16_to_f32(p[i]);
  return r;
}
CYB_INLINE void store_half(uint16_t* p, Vec x) { CYB_PARTS p[i] = f32_to_f16(x.v[i]); }

#define CYB_LANEWISE(signature, expression) \
  CYB_INLINE Vec signature {                \
    Vec r;                                  \
    CYB_PARTS r.v[i] = expression;          \
    return r;                               \
  }
CYB_LANEWISE(add(Vec a, Vec b), a.v[i] + b.v[i])
CYB_LANEWISE(sub(Vec a, Vec b), a.v[i] - b.v[i])
CYB_LANEWISE(mul(Vec a, Vec b), a.v[i] * b.v[i])
CYB_LANEWISE(div(Vec a, Vec b), a.v[i] / b.v[i])
CYB_LANEWISE(fma(Vec a, Vec b, Vec c), __builtin_fmaf(a.v[i], b.v[i], c.v[i]))
CYB_LANEWISE(fnma(Vec a, Vec b, Vec c), __builtin_fmaf(-a.v[i], b.v[i], c.v[i]))
CYB_INLINE void fma_broadcast(Vec& sum, Vec w, const float* x) { sum = fma(w, set1(*x), sum); }
CYB_LANEWISE(sqrt(Vec x), __builtin_sqrtf(x.v[i]))
CYB_LANEWISE(abs(Vec x), __builtin_fabsf(x.v[i]))
CYB_LANEWISE(neg(Vec x), -x.v[i])
CYB_LANEWISE(floor(Vec x), __builtin_floorf(x.v[i]))
CYB_LANEWISE(ceil(Vec x), __builtin_ceilf(x.v[i]))
CYB_LANEWISE(round_even(Vec x), __builtin_rintf(x.v[i]))
CYB_LANEWISE(copy_sign(Vec magnitude, Vec sign), __builtin_copysignf(magnitude.v[i], sign.v[i]))
CYB_LANEWISE(if_less(Vec a, Vec b, Vec yes, Vec no), a.v[i] < b.v[i] ? yes.v[i] : no.v[i])
CYB_LANEWISE(if_equal(Vec a, Vec b, Vec yes, Vec no), a.v[i] == b.v[i] ? yes.v[i] : no.v[i])
CYB_LANEWISE(at_least(Vec x, Vec lo), x.v[i] < lo.v[i] ? lo.v[i] : x.v[i])
CYB_LANEWISE(at_most(Vec x, Vec hi), hi.v[i] < x.v[i] ? hi.v[i] : x.v[i])
CYB_LANEWISE(keep_range(Vec x, int from, int to), i >= from && i < to ? x.v[i] : -__builtin_inff())
CYB_LANEWISE(distance(int first), __builtin_fabsf(static_cast<float>(first + i)))
#undef CYB_LANEWISE

CYB_INLINE void split_pairs(Vec lo, Vec hi, Vec* even, Vec* odd) {
  CYB_PARTS {
    even->v[i] = i < 8 ? lo.v[2 * i] : hi.v[2 * i - 16];
    odd->v[i] = i < 8 ? lo.v[2 * i + 1] : hi.v[2 * i - 15];
  }
}
CYB_INLINE void store_pairs(float* p, Vec even, Vec odd) {
  CYB_PARTS {
    p[2 * i] = even.v[i];
    p[2 * i + 1] = odd.v[i];
  }
}

CYB_INLINE void transpose16(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) to[j * to_stride + i] = from[i * from_stride + j];
}

CYB_INLINE Vec scale_by_power(Vec y, Vec t) {
  Vec r;
  CYB_PARTS {
    // Unsigned, because t may be a NaN and its bits anything; the product is a NaN all the same.
    const uint32_t n = std::bit_cast<uint32_t>(t.v[i]) - 0x4B400000u;
    const uint32_t a = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
    const float fa = std::bit_cast<float>((a + 127u) << 23);
    const float fb = std::bit_cast<float>((n - a + 127u) << 23);
    r.v[i] = y.v[i] * fa * fb;
  }
  return r;
}

CYB_INLINE Vec scale_by_small_power(Vec y, Vec t) { return scale_by_power(y, t); }

CYB_INLINE void split_power(Vec x, Vec* m, Vec* e) {
  CYB_PARTS {
    // Unsigned, because lanes that nobody will use may hold anything.
    const uint32_t bits = std::bit_cast<uint32_t>(x.v[i]);
    const auto power = static_cast<uint32_t>(static_cast<int32_t>(bits - 0x3F3504F3u) >> 23);
    m->v[i] = std::bit_cast<float>(bits - (power << 23));
    e->v[i] = static_cast<float>(static_cast<int32_t>(power));
  }
}

CYB_INLINE Vec add_exponent(Vec y, Vec t) {
  Vec r;
  CYB_PARTS r.v[i] =
      std::bit_cast<float>(std::bit_cast<uint32_t>(y.v[i]) + (std::bit_cast<uint32_t>(t.v[i]) << 23));
  return r;
}
CYB_INLINE Vec max_or_second(Vec a, Vec b) {
  Vec r;
  CYB_PARTS r.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
  return r;
}
CYB_INLINE Vec bounded(Vec x, float lo, float hi) {
  Vec r;
  CYB_PARTS {
    const float a = x.v[i] > lo ? x.v[i] : lo;  // as x86 has it: the second where either is NaN
    r.v[i] = a < hi ? a : hi;
  }
  return r;
}

CYB_INLINE float reduce_add(Vec x) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) x.v[i] = x.v[i] + x.v[i + half];
  return x.v[0];
}
CYB_INLINE float reduce_max(Vec x) {
  for (int half = 8; half > 0; half /= 2)
    for (int i = 0; i < half; ++i) x.v[i] = x.v[i] < x.v[i + half] ? x.v[i + half] : x.v[i];
  return x.v[0];
}
CYB_INLINE Vec join8(Vec low, Vec high) {
  for (int i = 0; i < 8; ++i) low.v[8 + i] = high.v[i];
  return low;
}
CYB_INLINE Vec add_rows8(const float* rows) {
  Vec r = set1(0.0f);
  for (int row = 0; row < 8; ++row, rows += 16) {
    float four[4];
    for (int i = 0; i < 4; ++i)
      four[i] = (rows[4 * i] + rows[4 * i + 2]) + (rows[4 * i + 1] + rows[4 * i + 3]);
    r.v[row] = (four[0] + four[2]) + (four[1] + four[3]);
  }
  return r;
}
CYB_INLINE Vec max_rows8(const float* rows) {
  Vec r = set1(0.0f);
  for (int row = 0; row < 8; ++row, rows += 16) {
    r.v[row] = rows[0];
    for (int i = 1; i < 16; ++i) r.v[row] = r.v[row] < rows[i] ? rows[i] : r.v[row];
  }
  return r;
}
CYB_INLINE float fma1(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

#undef CYB_PARTS

}  // namespace cyb::CYB_SIMD
