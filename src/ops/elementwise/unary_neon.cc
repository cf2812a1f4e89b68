// SPDX-License-Identifier: Apache-2.0
// The unary kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/elementwise/unary-inl.h"

namespace cyb {

extern const UnaryKernels kUnary_neon;
constexpr UnaryKernels kTable = CYB_SIMD::make_unary_kernels();
const UnaryKernels kUnary_neon = kTable;

}  // namespace cyb
