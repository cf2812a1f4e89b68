// SPDX-License-Identifier: Apache-2.0
// The loops in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/elementwise/loops-inl.h"

namespace cyb {

extern const LoopKernels kLoop_neon;
constexpr LoopKernels kTable = CYB_SIMD::make_loop_kernels();
const LoopKernels kLoop_neon = kTable;

}  // namespace cyb
