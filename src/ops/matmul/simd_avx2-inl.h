// SPDX-License-Identifier: Apache-2.0
// Vectors of 8 floats and 8 integers with AVX2; the AVX-512 file uses them too.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "ops/matmul/acts.h"

namespace cyb {
namespace {

using V8 = __m256;
using VI = __m256i;

inline V8 v8_zero() { return _mm256_setzero_ps(); }
inline V8 v8_load(const float* p) { return _mm256_loadu_ps(p); }
inline void v8_store(float* p, V8 v) { _mm256_storeu_ps(p, v); }
inline V8 v8_set1(float v) { return _mm256_set1_ps(v); }
inline V8 v8_mul(V8 a, V8 b) { return _mm256_mul_ps(a, b); }
inline V8 v8_fma(V8 a, V8 b, V8 c) { return _mm256_fmadd_ps(a, b, c); }
inline V8 v8_add(V8 a, V8 b) { return _mm256_add_ps(a, b); }

inline VI vi_load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline VI vi_load_i16(const void* p) {
  return _mm256_cvtepi16_epi32(_mm_loadu_si128(static_cast<const __m128i*>(p)));
}
inline VI vi_set1(int32_t v) { return _mm256_set1_epi32(v); }
inline VI vi_and(VI a, VI b) { return _mm256_and_si256(a, b); }
inline VI vi_sub(VI a, VI b) { return _mm256_sub_epi32(a, b); }
inline V8 vi_to_f32(VI v) { return _mm256_cvtepi32_ps(v); }
template <int N>
inline VI vi_shl(VI v) {
  return _mm256_slli_epi32(v, N);
}
template <int N>
inline VI vi_shr(VI v) {
  return _mm256_srli_epi32(v, N);
}
template <int N>
inline VI vi_sar(VI v) {
  return _mm256_srai_epi32(v, N);
}

// The lanes that products of many rows of 8-bit activations sum in (Expanded of codes_x86-inl.h), by name.
struct Lanes8 {
  using F = V8;
  using I = VI;
  static constexpr int64_t kLanes = 8;
  static F zero() { return v8_zero(); }
  static F load(const float* p) { return v8_load(p); }
  static void store(float* p, F v) { v8_store(p, v); }
  static F set1(float v) { return v8_set1(v); }
  static F mul(F a, F b) { return v8_mul(a, b); }
  static F fma(F a, F b, F c) { return v8_fma(a, b, c); }
  static F to_f32(I v) { return vi_to_f32(v); }
  static I codes(const uint8_t* p) { return vi_load(p); }
  static I broadcast(int32_t v) { return vi_set1(v); }
};

// out[j][i] = in[i][j] for 8 × 8 floats.
inline void transpose8(const float* in, int64_t ldi, float* out, int64_t ldo) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; i++) r[i] = _mm256_loadu_ps(in + i * ldi);
  for (int i = 0; i < 4; i++) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  for (int i = 0; i < 2; i++) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
  for (int i = 0; i < 4; i++) {
    _mm256_storeu_ps(out + i * ldo, _mm256_permute2f128_ps(r[i], r[4 + i], 0x20));
    _mm256_storeu_ps(out + (4 + i) * ldo, _mm256_permute2f128_ps(r[i], r[4 + i], 0x31));
  }
}

inline int32_t four_bytes(const int8_t* p) {
  int32_t v;
  __builtin_memcpy(&v, p, 4);
  return v;
}
inline __m256i broadcast4(const int8_t* p) { return _mm256_set1_epi32(four_bytes(p)); }

// One block of activations: acts.h. `count` values are read.
inline void quantize_block(const float* x, int count, Q8Block* out) {
  alignas(32) float tail[32];
  if (count < 32) {
    for (int i = 0; i < 32; i++) tail[i] = i < count ? x[i] : 0.0f;
    x = tail;
  }
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256 v[4];
  __m256i top = _mm256_setzero_si256();
  for (int i = 0; i < 4; i++) {
    v[i] = _mm256_loadu_ps(x + 8 * i);
    top = _mm256_max_epi32(top, _mm256_and_si256(_mm256_castps_si256(v[i]), magnitude));
  }
  __m128i half = _mm_max_epi32(_mm256_castsi256_si128(top), _mm256_extracti128_si256(top, 1));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  half = _mm_max_epi32(half, _mm_shuffle_epi32(half, 0xb1));
  const uint32_t bits = static_cast<uint32_t>(_mm_cvtsi128_si32(half));
  float max;
  __builtin_memcpy(&max, &bits, 4);
  float scale = max / 127.0f, inverse = 127.0f / max;
  if (bits >= 0x7f800000u || max < 0x1p-100f) {
    scale = bits >= 0x7f800000u ? __builtin_nanf("") : 0.0f;
    inverse = 0;
    for (int i = 0; i < 4; i++) v[i] = _mm256_setzero_ps();
  }
  __m256i q[4];
  for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(v[i], _mm256_set1_ps(inverse)));
  const __m256i packed = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out->q),
                      _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  const __m256i all = _mm256_add_epi32(_mm256_add_epi32(q[0], q[1]), _mm256_add_epi32(q[2], q[3]));
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  const int32_t s = _mm_cvtsi128_si32(sum);
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
