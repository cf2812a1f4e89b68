// SPDX-License-Identifier: Apache-2.0
// The rotary embedding kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/rope/rope-inl.h"

namespace cyb {

extern const RopeKernels kRope_avx512;
constexpr RopeKernels kTable = CYB_SIMD::make_rope_kernels();
const RopeKernels kRope_avx512 = kTable;

}  // namespace cyb
