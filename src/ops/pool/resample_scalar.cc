// SPDX-License-Identifier: Apache-2.0
// The row sums of resampling in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/pool/resample-inl.h"

namespace cyb {

extern const ResampleKernels kResample_scalar;
constexpr ResampleKernels kTable = CYB_SIMD::make_resample_kernels();
const ResampleKernels kResample_scalar = kTable;

}  // namespace cyb
