// SPDX-License-Identifier: Apache-2.0
// The normalization kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/norm/norm-inl.h"

namespace cyb {

extern const NormKernels kNorm_neon;
constexpr NormKernels kTable = CYB_SIMD::make_norm_kernels();
const NormKernels kNorm_neon = kTable;

}  // namespace cyb
