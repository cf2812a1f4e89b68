// SPDX-License-Identifier: Apache-2.0
// The pooling kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/pool/pool-inl.h"

namespace cyb {

extern const PoolKernels kPool_avx2;
constexpr PoolKernels kTable = {CYB_SIMD::pool};
const PoolKernels kPool_avx2 = kTable;

}  // namespace cyb
