// SPDX-License-Identifier: Apache-2.0
// codes.h: ranges on sixteen lanes, the rest as loops that compilers turn into vectors. Included once by each
// codes_ISA.cc, which is compiled for that instruction set; all operations are exact or correctly rounded, so
// that no choice of instructions changes a bit.
#pragma once

#include "ops/quant/codes.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

static void code_range(const float* x, int64_t n, float* least, float* most) {
  Vec low[4], high[4];
  CYB_UNROLL for (int j = 0; j < 4; ++j) low[j] = set1(*least), high[j] = set1(*most);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) CYB_UNROLL for (int j = 0; j < 4; ++j) {
      const Vec v = load(x + i + 16 * j);
      low[j] = if_less(v, low[j], v, low[j]);
      high[j] = if_less(high[j], v, v, high[j]);
    }
  for (; i < n; i += 16) {
    const Vec v = load_first(x + i, n - i, *least), w = load_first(x + i, n - i, *most);
    low[0] = if_less(v, low[0], v, low[0]);
    high[0] = if_less(high[0], w, w, high[0]);
  }
  alignas(64) float ends[16];
  for (int j = 0; j < 4; ++j) {
    store(ends, low[j]);
    for (float e : ends) *least = e < *least ? e : *least;
    store(ends, high[j]);
    for (float e : ends) *most = e > *most ? e : *most;
  }
}

// Rounds to nearest even for |v| < 2^22: the sum with 1.5·2^23 has the integer in its low bits.
CYB_INLINE int32_t round_small(float v) { return __builtin_bit_cast(int32_t, v + 12582912.0f) - 0x4B400000; }

CYB_INLINE int32_t code(float x, float scale, float zero, float low, float high) {
  const float v = x / scale, from = low - zero, to = high - zero;
  const float above = v > from ? v : from;  // NaN: the lowest
  return round_small(above < to ? above : to) + static_cast<int32_t>(zero);
}

template <class T>
static void quantize(const CodeRun& r, const float* __restrict x, void* out) {
  T* __restrict y = static_cast<T*>(out);
  const float low = r.low, high = r.high;
  const int64_t n = r.n;
  if (r.step == 0) {
    const float scale = *r.scale, zero = *r.zero;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(code(x[i], scale, zero, low, high));
  } else {
    const float* __restrict scale = r.scale, * __restrict zero = r.zero;
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(code(x[i], scale[i], zero[i], low, high));
  }
}

template <class T>
static void dequantize(const CodeRun& r, const void* in, float* __restrict y) {
  const T* __restrict x = static_cast<const T*>(in);
  const int64_t n = r.n;
  if (r.step == 0) {
    const float scale = *r.scale, zero = *r.zero;
    for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero) * scale;
  } else {
    const float* __restrict scale = r.scale, * __restrict zero = r.zero;
    for (int64_t i = 0; i < n; ++i) y[i] = (static_cast<float>(x[i]) - zero[i]) * scale[i];
  }
}

constexpr CodeKernels make_code_kernels() {
  return {code_range,
          {quantize<uint8_t>, quantize<int8_t>, quantize<uint16_t>, quantize<int16_t>},
          {dequantize<uint8_t>, dequantize<int8_t>, dequantize<uint16_t>, dequantize<int16_t>}};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
