// SPDX-License-Identifier: Apache-2.0
// The pooling kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/pool/pool-inl.h"

namespace cyb {

extern const PoolKernels kPool_avx512;
constexpr PoolKernels kTable = {CYB_SIMD::pool};
const PoolKernels kPool_avx512 = kTable;

}  // namespace cyb
