// SPDX-License-Identifier: Apache-2.0
// The row sums of resampling in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/pool/resample-inl.h"

namespace cyb {

extern const ResampleKernels kResample_avx512;
constexpr ResampleKernels kTable = CYB_SIMD::make_resample_kernels();
const ResampleKernels kResample_avx512 = kTable;

}  // namespace cyb
