// SPDX-License-Identifier: Apache-2.0
// The reduction kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/reduce/reduce-inl.h"

namespace cyb {

extern const ReduceKernels kReduce_avx512;
constexpr ReduceKernels kTable = CYB_SIMD::make_reduce_kernels();
const ReduceKernels kReduce_avx512 = kTable;

}  // namespace cyb
