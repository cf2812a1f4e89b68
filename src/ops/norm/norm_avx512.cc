// SPDX-License-Identifier: Apache-2.0
// The normalization kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/norm/norm-inl.h"

namespace cyb {

extern const NormKernels kNorm_avx512;
constexpr NormKernels kTable = CYB_SIMD::make_norm_kernels();
const NormKernels kNorm_avx512 = kTable;

}  // namespace cyb
