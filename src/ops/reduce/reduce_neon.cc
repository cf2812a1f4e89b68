// SPDX-License-Identifier: Apache-2.0
// The reduction kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/reduce/reduce-inl.h"

namespace cyb {

extern const ReduceKernels kReduce_neon;
constexpr ReduceKernels kTable = CYB_SIMD::make_reduce_kernels();
const ReduceKernels kReduce_neon = kTable;

}  // namespace cyb
