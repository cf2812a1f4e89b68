// SPDX-License-Identifier: Apache-2.0
// Peak rates of NEON: the 8-bit product that every AArch64 has.
#include <arm_neon.h>

#include <cstdint>

namespace cyb {
namespace {

using Real = float32x4_t;
using Ints = int32x4_t;
using Codes = int8x16_t;
inline Real real_set(float x) { return vdupq_n_f32(x); }
inline Real real_fma(Real a, Real b, Real c) { return vfmaq_f32(c, a, b); }
inline float real_first(Real a) { return vgetq_lane_f32(a, 0); }
inline Ints int_set(int32_t x) { return vdupq_n_s32(x); }
inline Codes code_set(int8_t x) { return vdupq_n_s8(x); }
inline void hide(Codes& a) { asm volatile("" : "+w"(a)); }
inline Ints int_dot(Ints sum, Codes a, Codes b) {
#ifdef __ARM_FEATURE_DOTPROD
  return vdotq_s32(sum, a, b);
#else
  hide(b);
  const int16x8_t low = vmull_s8(vget_low_s8(a), vget_low_s8(b));
  return vpadalq_s16(sum, vmlal_s8(low, vget_high_s8(a), vget_high_s8(b)));
#endif
}
inline int32_t int_first(Ints a) { return vgetq_lane_s32(a, 0); }

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_neon;
const PeakKernels kPeak_neon = {peak_f32, peak_int8};
}  // namespace cyb
