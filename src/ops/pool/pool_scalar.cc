// SPDX-License-Identifier: Apache-2.0
// The pooling kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/pool/pool-inl.h"

namespace cyb {

extern const PoolKernels kPool_scalar;
constexpr PoolKernels kTable = {CYB_SIMD::pool};
const PoolKernels kPool_scalar = kTable;

}  // namespace cyb
