// SPDX-License-Identifier: Apache-2.0
// The row sums of resampling in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/pool/resample-inl.h"

namespace cyb {

extern const ResampleKernels kResample_avx2;
constexpr ResampleKernels kTable = CYB_SIMD::make_resample_kernels();
const ResampleKernels kResample_avx2 = kTable;

}  // namespace cyb
