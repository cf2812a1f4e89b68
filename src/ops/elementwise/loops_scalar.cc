// SPDX-License-Identifier: Apache-2.0
// The loops in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/elementwise/loops-inl.h"

namespace cyb {

extern const LoopKernels kLoop_scalar;
constexpr LoopKernels kTable = CYB_SIMD::make_loop_kernels();
const LoopKernels kLoop_scalar = kTable;

}  // namespace cyb
