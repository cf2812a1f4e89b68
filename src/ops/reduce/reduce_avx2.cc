// SPDX-License-Identifier: Apache-2.0
// The reduction kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/reduce/reduce-inl.h"

namespace cyb {

extern const ReduceKernels kReduce_avx2;
constexpr ReduceKernels kTable = CYB_SIMD::make_reduce_kernels();
const ReduceKernels kReduce_avx2 = kTable;

}  // namespace cyb
