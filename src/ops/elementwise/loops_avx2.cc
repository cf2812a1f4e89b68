// SPDX-License-Identifier: Apache-2.0
// The loops in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/elementwise/loops-inl.h"

namespace cyb {

extern const LoopKernels kLoop_avx2;
constexpr LoopKernels kTable = CYB_SIMD::make_loop_kernels();
const LoopKernels kLoop_avx2 = kTable;

}  // namespace cyb
