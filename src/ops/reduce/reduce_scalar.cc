// SPDX-License-Identifier: Apache-2.0
// The reduction kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/reduce/reduce-inl.h"

namespace cyb {

extern const ReduceKernels kReduce_scalar;
constexpr ReduceKernels kTable = CYB_SIMD::make_reduce_kernels();
const ReduceKernels kReduce_scalar = kTable;

}  // namespace cyb
