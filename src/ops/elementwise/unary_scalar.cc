// SPDX-License-Identifier: Apache-2.0
// The unary kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/elementwise/unary-inl.h"

namespace cyb {

extern const UnaryKernels kUnary_scalar;
constexpr UnaryKernels kTable = CYB_SIMD::make_unary_kernels();
const UnaryKernels kUnary_scalar = kTable;

}  // namespace cyb
