// SPDX-License-Identifier: Apache-2.0
// The loops in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/elementwise/loops-inl.h"

namespace cyb {

extern const LoopKernels kLoop_avx512;
constexpr LoopKernels kTable = CYB_SIMD::make_loop_kernels();
const LoopKernels kLoop_avx512 = kTable;

}  // namespace cyb
