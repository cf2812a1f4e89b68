// SPDX-License-Identifier: Apache-2.0
// codes.h as loops that compilers turn into vectors. Included once by each codes_ISA.cc, which is compiled
// for that instruction set; all operations are exact or correctly rounded, so that no choice of instructions
// changes a bit.
#pragma once

#include "ops/quant/codes.h"

namespace cyb {
namespace {

void range(const float* x, int64_t n, float* least, float* most) {
  float low[16], high[16];
  for (int j = 0; j < 16; j++) low[j] = *least, high[j] = *most;
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    for (int j = 0; j < 16; j++) {
      low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
      high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    }
  for (int j = 0; i < n; i++, j++) {
    low[j] = x[i] < low[j] ? x[i] : low[j];
    high[j] = x[i] > high[j] ? x[i] : high[j];
  }
  for (int j = 0; j < 16; j++) {
    *least = low[j] < *least ? low[j] : *least;
    *most = high[j] > *most ? high[j] : *most;
  }
}

// Rounds to nearest even for |v| < 2^22: the sum with 1.5·2^23 has the integer in its low bits.
inline int32_t round_small(float v) { return __builtin_bit_cast(int32_t, v + 12582912.0f) - 0x4B400000; }

inline int32_t code(float x, float scale, float zero, float low, float high) {
  const float v = x / scale, from = low - zero, to = high - zero;
  const float above = v > from ? v : from;  // NaN: the lowest
  return round_small(above < to ? above : to) + static_cast<int32_t>(zero);
}

template <class T>
void quantize(const CodeRun& r, const float* x, void* out) {
  T* y = static_cast<T*>(out);
  const float low = r.low, high = r.high;
  if (r.step == 0) {
    const float scale = *r.scale, zero = *r.zero;
    for (int64_t i = 0; i < r.n; i++) y[i] = static_cast<T>(code(x[i], scale, zero, low, high));
  } else {
    for (int64_t i = 0; i < r.n; i++) y[i] = static_cast<T>(code(x[i], r.scale[i], r.zero[i], low, high));
  }
}

template <class T>
void dequantize(const CodeRun& r, const void* in, float* y) {
  const T* x = static_cast<const T*>(in);
  if (r.step == 0) {
    const float scale = *r.scale, zero = *r.zero;
    for (int64_t i = 0; i < r.n; i++) y[i] = (static_cast<float>(x[i]) - zero) * scale;
  } else {
    for (int64_t i = 0; i < r.n; i++) y[i] = (static_cast<float>(x[i]) - r.zero[i]) * r.scale[i];
  }
}

constexpr CodeKernels kCodeTable = {
    range,
    {quantize<uint8_t>, quantize<int8_t>, quantize<uint16_t>, quantize<int16_t>},
    {dequantize<uint8_t>, dequantize<int8_t>, dequantize<uint16_t>, dequantize<int16_t>}};

}  // namespace
}  // namespace cyb
