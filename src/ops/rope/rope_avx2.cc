// SPDX-License-Identifier: Apache-2.0
// The rotary embedding kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/rope/rope-inl.h"

namespace cyb {

extern const RopeKernels kRope_avx2;
constexpr RopeKernels kTable = CYB_SIMD::make_rope_kernels();
const RopeKernels kRope_avx2 = kTable;

}  // namespace cyb
