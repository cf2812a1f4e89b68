// SPDX-License-Identifier: Apache-2.0
// The rotary embedding kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/rope/rope-inl.h"

namespace cyb {

extern const RopeKernels kRope_neon;
constexpr RopeKernels kTable = CYB_SIMD::make_rope_kernels();
const RopeKernels kRope_neon = kTable;

}  // namespace cyb
