// SPDX-License-Identifier: Apache-2.0
// Vectors of 8 floats and 8 integers with NEON, as pairs of registers.
#pragma once

#include <arm_neon.h>

#include <cstdint>

#include "ops/matmul/acts.h"

namespace cyb {
namespace {

struct V8 {
  float32x4_t a, b;
};
struct VI {
  int32x4_t a, b;
};

inline V8 v8_set1(float v) { return {vdupq_n_f32(v), vdupq_n_f32(v)}; }
inline V8 v8_zero() { return v8_set1(0); }
inline V8 v8_load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
inline void v8_store(float* p, V8 v) {
  vst1q_f32(p, v.a);
  vst1q_f32(p + 4, v.b);
}
inline V8 v8_mul(V8 x, V8 y) { return {vmulq_f32(x.a, y.a), vmulq_f32(x.b, y.b)}; }
inline V8 v8_add(V8 x, V8 y) { return {vaddq_f32(x.a, y.a), vaddq_f32(x.b, y.b)}; }
inline V8 v8_fma(V8 x, V8 y, V8 z) { return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b)}; }

inline int8x16_t load16(const void* p) { return vld1q_s8(static_cast<const int8_t*>(p)); }
inline VI vi_load(const void* p) {
  return {vreinterpretq_s32_s8(load16(p)), vreinterpretq_s32_s8(load16(static_cast<const int8_t*>(p) + 16))};
}
inline VI vi_load_i16(const void* p) {
  const int16x8_t v = vreinterpretq_s16_s8(load16(p));
  return {vmovl_s16(vget_low_s16(v)), vmovl_high_s16(v)};
}
inline VI vi_set1(int32_t v) { return {vdupq_n_s32(v), vdupq_n_s32(v)}; }
inline VI vi_and(VI x, VI y) { return {vandq_s32(x.a, y.a), vandq_s32(x.b, y.b)}; }
inline VI vi_sub(VI x, VI y) { return {vsubq_s32(x.a, y.a), vsubq_s32(x.b, y.b)}; }
inline V8 vi_to_f32(VI v) { return {vcvtq_f32_s32(v.a), vcvtq_f32_s32(v.b)}; }
template <int N>
inline VI vi_shl(VI v) {
  return {vshlq_n_s32(v.a, N), vshlq_n_s32(v.b, N)};
}
template <int N>
inline int32x4_t shr(int32x4_t v) {
  return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(v), N));
}
template <int N>
inline VI vi_shr(VI v) {
  return {shr<N>(v.a), shr<N>(v.b)};
}
template <int N>
inline VI vi_sar(VI v) {
  return {vshrq_n_s32(v.a, N), vshrq_n_s32(v.b, N)};
}

inline void transpose4(const float* in, int64_t ldi, float* out, int64_t ldo) {
  const float32x4_t r0 = vld1q_f32(in), r1 = vld1q_f32(in + ldi), r2 = vld1q_f32(in + 2 * ldi),
                    r3 = vld1q_f32(in + 3 * ldi);
  const float64x2_t t0 = vreinterpretq_f64_f32(vtrn1q_f32(r0, r1)),
                    t1 = vreinterpretq_f64_f32(vtrn2q_f32(r0, r1)),
                    t2 = vreinterpretq_f64_f32(vtrn1q_f32(r2, r3)),
                    t3 = vreinterpretq_f64_f32(vtrn2q_f32(r2, r3));
  vst1q_f32(out, vreinterpretq_f32_f64(vtrn1q_f64(t0, t2)));
  vst1q_f32(out + ldo, vreinterpretq_f32_f64(vtrn1q_f64(t1, t3)));
  vst1q_f32(out + 2 * ldo, vreinterpretq_f32_f64(vtrn2q_f64(t0, t2)));
  vst1q_f32(out + 3 * ldo, vreinterpretq_f32_f64(vtrn2q_f64(t1, t3)));
}
// out[j][i] = in[i][j] for 8 × 8 floats.
inline void transpose8(const float* in, int64_t ldi, float* out, int64_t ldo) {
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 8; j += 4) transpose4(in + i * ldi + j, ldi, out + j * ldo + i, ldo);
}

inline int8x16_t broadcast4(const int8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return vreinterpretq_s8_s32(vdupq_n_s32(v));
}

// One block of activations: acts.h. `count` values are read.
inline void quantize_block(const float* x, int count, Q8Block* out) {
  float tail[32];
  if (count < 32) {
    for (int i = 0; i < 32; i++) tail[i] = i < count ? x[i] : 0.0f;
    x = tail;
  }
  float32x4_t v[8];
  uint32x4_t top = vdupq_n_u32(0);
  for (int i = 0; i < 8; i++) {
    v[i] = vld1q_f32(x + 4 * i);
    top = vmaxq_u32(top, vandq_u32(vreinterpretq_u32_f32(v[i]), vdupq_n_u32(0x7fffffffu)));
  }
  const uint32_t bits = vmaxvq_u32(top);
  float max;
  __builtin_memcpy(&max, &bits, 4);
  float scale = max / 127.0f, inverse = 127.0f / max;
  if (bits >= 0x7f800000u || max < 0x1p-100f) {
    scale = bits >= 0x7f800000u ? __builtin_nanf("") : 0.0f;
    inverse = 0;
    for (int i = 0; i < 8; i++) v[i] = vdupq_n_f32(0);
  }
  int32x4_t sum = vdupq_n_s32(0);
  int16x8_t half[4];
  for (int i = 0; i < 4; i++) {
    const int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(v[2 * i], inverse));
    const int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(v[2 * i + 1], inverse));
    sum = vaddq_s32(sum, vaddq_s32(a, b));
    half[i] = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
  }
  vst1q_s8(out->q, vcombine_s8(vmovn_s16(half[0]), vmovn_s16(half[1])));
  vst1q_s8(out->q + 16, vcombine_s8(vmovn_s16(half[2]), vmovn_s16(half[3])));
  const int32_t s = vaddvq_s32(sum);
  out->scale = scale;
  out->neg1 = -s;
  out->neg8 = -8 * s;
  out->neg128 = -128 * s;
}

[[maybe_unused]] void quantize_row(const float* x, int64_t k, Q8Block* out) {
  for (int64_t begin = 0; begin < k; begin += 32, out++)
    quantize_block(x + begin, static_cast<int>(k - begin < 32 ? k - begin : 32), out);
}

}  // namespace
}  // namespace cyb
