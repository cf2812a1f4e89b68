// SPDX-License-Identifier: Apache-2.0
// The normalization kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/norm/norm-inl.h"

namespace cyb {

extern const NormKernels kNorm_avx2;
constexpr NormKernels kTable = CYB_SIMD::make_norm_kernels();
const NormKernels kNorm_avx2 = kTable;

}  // namespace cyb
