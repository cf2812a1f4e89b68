// SPDX-License-Identifier: Apache-2.0
// The unary kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/elementwise/unary-inl.h"

namespace cyb {

extern const UnaryKernels kUnary_avx2;
constexpr UnaryKernels kTable = CYB_SIMD::make_unary_kernels();
const UnaryKernels kUnary_avx2 = kTable;

}  // namespace cyb
