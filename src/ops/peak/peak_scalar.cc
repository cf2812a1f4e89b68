// SPDX-License-Identifier: Apache-2.0
// Rates of plain C++: what machines without vector kernels here can do.
#include <cmath>
#include <cstdint>

namespace cyb {
namespace {

using Real = float;
using Ints = int32_t;
struct Codes {
  int8_t v[4];
};
inline Real real_set(float x) { return x; }
inline Real real_fma(Real a, Real b, Real c) { return a * b + c; }
inline float real_first(Real a) { return a; }
inline Ints int_set(int32_t x) { return x; }
inline Codes code_set(int8_t x) { return {{x, x, x, x}}; }
inline void hide(Codes& a) { asm volatile("" : "+m"(a)); }
inline Ints int_dot(Ints sum, Codes a, Codes b) {
  hide(b);
  uint32_t s = static_cast<uint32_t>(sum);
  for (int i = 0; i < 4; i++) s += static_cast<uint32_t>(a.v[i] * b.v[i]);
  return static_cast<int32_t>(s);
}
inline int32_t int_first(Ints a) { return a; }

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_scalar;
const PeakKernels kPeak_scalar = {peak_f32, peak_int8};
}  // namespace cyb
