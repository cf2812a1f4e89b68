// SPDX-License-Identifier: Apache-2.0
// The normalization kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/norm/norm-inl.h"

namespace cyb {

extern const NormKernels kNorm_scalar;
constexpr NormKernels kTable = CYB_SIMD::make_norm_kernels();
const NormKernels kNorm_scalar = kTable;

}  // namespace cyb
