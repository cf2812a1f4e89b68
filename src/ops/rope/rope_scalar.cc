// SPDX-License-Identifier: Apache-2.0
// The rotary embedding kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/rope/rope-inl.h"

namespace cyb {

extern const RopeKernels kRope_scalar;
constexpr RopeKernels kTable = CYB_SIMD::make_rope_kernels();
const RopeKernels kRope_scalar = kTable;

}  // namespace cyb
