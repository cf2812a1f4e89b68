// SPDX-License-Identifier: Apache-2.0
// The unary kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/elementwise/unary-inl.h"

namespace cyb {

extern const UnaryKernels kUnary_avx512;
constexpr UnaryKernels kTable = CYB_SIMD::make_unary_kernels();
const UnaryKernels kUnary_avx512 = kTable;

}  // namespace cyb
