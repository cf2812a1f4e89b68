// SPDX-License-Identifier: Apache-2.0
// The pooling kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/pool/pool-inl.h"

namespace cyb {

extern const PoolKernels kPool_neon;
constexpr PoolKernels kTable = {CYB_SIMD::pool};
const PoolKernels kPool_neon = kTable;

}  // namespace cyb
