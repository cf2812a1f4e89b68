// SPDX-License-Identifier: Apache-2.0
// The row sums of resampling in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/pool/resample-inl.h"

namespace cyb {

extern const ResampleKernels kResample_neon;
constexpr ResampleKernels kTable = CYB_SIMD::make_resample_kernels();
const ResampleKernels kResample_neon = kTable;

}  // namespace cyb
