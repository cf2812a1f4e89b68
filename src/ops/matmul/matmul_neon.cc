// SPDX-License-Identifier: Apache-2.0
// NEON as every AArch64 has it: integer products by sums of 16 bits.
#include "ops/matmul/simd_neon-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

using VW = float32x4_t;
constexpr int kWide = 4, kPanel = 16, kTileColumns = 16, kRowTile = 6;
inline VW vw_zero() { return vdupq_n_f32(0); }
inline VW vw_load(const float* p) { return vld1q_f32(p); }
inline void vw_store(float* p, VW v) { vst1q_f32(p, v); }
inline VW vw_set1(float v) { return vdupq_n_f32(v); }
inline VW vw_fma(VW a, VW b, VW c) { return vfmaq_f32(c, a, b); }
inline void vw_fma_broadcast(VW& sum, VW w, const float* x) { sum = vw_fma(vw_set1(*x), w, sum); }
inline VW vw_add(VW a, VW b) { return vaddq_f32(a, b); }
inline VW vw_mul(VW a, VW b) { return vmulq_f32(a, b); }

}  // namespace
}  // namespace cyb

#include "ops/matmul/f32-inl.h"

namespace cyb {
namespace {

// Sums of four bytes' products for 8 rows. Pieces come in pairs, because 16 bits hold two products of 128 · 127.
struct Sum {
  int32x4_t s[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
  void add(const int8x16_t (&w0)[2], int8x16_t x0, const int8x16_t (&w1)[2], int8x16_t x1) {
    for (int i = 0; i < 2; i++) {
      const int16x8_t low =
          vmlal_s8(vmull_s8(vget_low_s8(w0[i]), vget_low_s8(x0)), vget_low_s8(w1[i]), vget_low_s8(x1));
      s[2 * i] = vpadalq_s16(s[2 * i], low);
      s[2 * i + 1] = vpadalq_s16(s[2 * i + 1], vmlal_high_s8(vmull_high_s8(w0[i], x0), w1[i], x1));
    }
  }
  VI get() const { return {vpaddq_s32(s[0], s[1]), vpaddq_s32(s[2], s[3])}; }
};

}  // namespace
}  // namespace cyb

#include "ops/matmul/q8_neon-inl.h"

namespace cyb {

const MatmulKernels matmul_kernels_neon = {Isa::neon,
                                           quantize_row,
                                           {nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>},
                                           {f32_acts<ExpandU32>, f32_acts<ExpandU16>, f32_acts<ExpandQ8>,
                                            f32_acts<ExpandQ4>, f32_acts<ExpandTernary>},
                                           dense};

}  // namespace cyb
