// SPDX-License-Identifier: Apache-2.0
// Loops of independent multiply-adds. The including file names its vectors: Real, Ints, Codes, and real_set,
// real_fma, real_first, int_dot (u8 times i8, four neighbours added to each i32), int_first.
#pragma once

#include <cstdint>

#include "ops/peak/peak.h"

namespace cyb {
namespace {

constexpr int kChains = 12;  // more than latency times issue width, fewer than there are registers

int64_t peak_f32(int64_t rounds, float* sink) {
  Real acc[kChains];
  for (int i = 0; i < kChains; i++) acc[i] = real_set(static_cast<float>(i));
  const Real a = real_set(*sink + 0.999f), b = real_set(*sink + 1e-3f);
  for (int64_t r = 0; r < rounds; r++)
#pragma GCC unroll 16
    for (int i = 0; i < kChains; i++) acc[i] = real_fma(acc[i], a, b);
  float s = 0;
  for (int i = 0; i < kChains; i++) s += real_first(acc[i]);
  *sink = s * 0.0f;
  return int64_t(kChains) * 2 * static_cast<int64_t>(sizeof(Real) / 4);
}

int64_t peak_int8(int64_t rounds, int32_t* sink) {
  Ints acc[kChains];
  for (int i = 0; i < kChains; i++) acc[i] = int_set(0);
  Codes a = code_set(*sink == 1 ? 2 : 3);
  for (int64_t r = 0; r < rounds; r++) {
    hide(a);  // the product may not be taken out of the loop
#pragma GCC unroll 16
    for (int i = 0; i < kChains; i++) acc[i] = int_dot(acc[i], a, a);
  }
  int32_t s = 0;
  for (int i = 0; i < kChains; i++) s ^= int_first(acc[i]);
  *sink = s == 1 ? 1 : 0;
  return int64_t(kChains) * 2 * static_cast<int64_t>(sizeof(Codes));
}

}  // namespace
}  // namespace cyb
