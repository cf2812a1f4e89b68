// SPDX-License-Identifier: Apache-2.0
// Keys and values of 8 bits (KvType::q8 in kv_layout.h): sixteen codes or scales to floats and back.
#pragma once

#include "ops/attention/kv_layout.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

#ifdef CYB_SIMD_TARGET
CYB_INLINE Vec load16(const int8_t* p) {
  const hn::Rebind<int8_t, Lanes> bytes;
  Vec r;
  CYB_UNROLL for (int i = 0; i < kParts; ++i) r.v[i] =
      hn::ConvertTo(Lanes(), hn::PromoteTo(IntLanes(), hn::LoadU(bytes, p + i * kLanes)));
  return r;
}
// Rounds to nearest even, saturates.
CYB_INLINE void store_codes(int8_t* p, Vec x) {
  const hn::Rebind<int8_t, Lanes> bytes;
  CYB_UNROLL for (int i = 0; i < kParts; ++i)
      hn::StoreU(hn::DemoteTo(bytes, hn::NearestInt(x.v[i])), bytes, p + i * kLanes);
}
// Sixteen bf16 scales.
CYB_INLINE Vec load_scales(const uint16_t* p) {
  const hn::Rebind<uint16_t, Lanes> halves;
  const hn::RebindToUnsigned<Lanes> words;
  Vec r;
  CYB_UNROLL for (int i = 0; i < kParts; ++i) r.v[i] =
      hn::BitCast(Lanes(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, p + i * kLanes))));
  return r;
}
#else
CYB_INLINE Vec load16(const int8_t* p) {
  Vec r;
  for (int i = 0; i < 16; ++i) r.v[i] = p[i];
  return r;
}
CYB_INLINE void store_codes(int8_t* p, Vec x) {
  for (int i = 0; i < 16; ++i) {
    const float v = __builtin_nearbyintf(x.v[i]);
    p[i] = static_cast<int8_t>(v < -128.0f ? -128.0f : v > 127.0f ? 127.0f : v);
  }
}
CYB_INLINE Vec load_scales(const uint16_t* p) {
  Vec r;
  for (int i = 0; i < 16; ++i) r.v[i] = bf16_to_f32(p[i]);
  return r;
}
#endif
CYB_INLINE float scale_value(uint16_t bits) { return __builtin_bit_cast(float, uint32_t{bits} << 16); }

// The largest of a block over 127, upwards to bf16, so that codes stay within ±127. `odd` is the sum of 0 ·
// x: NaN where one is not finite, and the scale then is too.
CYB_INLINE uint16_t block_scale(float top, float odd) {
  if (!(odd == 0.0f)) return 0x7FC0;
  if (top < 0x1p-100f) return 0;
  return static_cast<uint16_t>((__builtin_bit_cast(uint32_t, top / 127.0f) + 0xFFFF) >> 16);
}

// Up to sixteen dimensions of a key and as many half a head further on: n and n2 values from x and x2, to
// codes kKvLanes apart; a scale for each four and their partners, as far apart.
CYB_INLINE void encode_key(const float* x, int32_t n, const float* x2, int32_t n2, int8_t* codes,
                           int8_t* codes2, uint16_t* scales) {
  const Vec a = load_first(x, n), b = n2 > 0 ? load_first(x2, n2) : set1(0.0f), zero = set1(0.0f);
  alignas(64) float top[16], odd[16], by[16];
  store(top, vmax(abs(a), abs(b)));
  store(odd, a * zero + b * zero);
  for (int32_t j = 0; j < 16; j += kKvKeyStep) {
    float most = top[j], sum = odd[j];
    for (int32_t i = 1; i < kKvKeyStep; ++i) {
      most = most < top[j + i] ? top[j + i] : most;
      sum += odd[j + i];
    }
    const uint16_t scale = block_scale(most, sum);
    const float s = scale_value(scale);
    for (int32_t i = 0; i < kKvKeyStep; ++i) by[j + i] = s > 0.0f ? 1.0f / s : 0.0f;
    if (j < n) scales[j / kKvKeyStep * kKvLanes] = scale;
  }
  alignas(64) int8_t lanes[16], lanes2[16];
  const Vec f = load(by);
  store_codes(lanes, if_less(zero, f, a * f, zero));
  store_codes(lanes2, if_less(zero, f, b * f, zero));
  for (int32_t j = 0; j < n; ++j) codes[j * kKvLanes] = lanes[j];
  for (int32_t j = 0; j < n2; ++j) codes2[j * kKvLanes] = lanes2[j];
}

// One block of a value: n numbers from x.
CYB_INLINE uint16_t encode_value(const float* x, int32_t n, int8_t* codes) {
  const Vec a = load_first(x, n < 16 ? n : 16), b = n > 16 ? load_first(x + 16, n - 16) : set1(0.0f);
  const Vec none = set1(0.0f);
  const uint16_t scale = block_scale(reduce_max(vmax(abs(a), abs(b))), reduce_add(a * none + b * none));
  const float s = scale_value(scale);
  const Vec by = set1(s > 0.0f ? 1.0f / s : 0.0f), zero = set1(0.0f);
  alignas(64) int8_t lanes[32];
  store_codes(lanes, s > 0.0f ? a * by : zero);
  store_codes(lanes + 16, s > 0.0f ? b * by : zero);
  for (int32_t j = 0; j < n; ++j) codes[j] = lanes[j];
  return scale;
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
