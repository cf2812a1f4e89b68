// SPDX-License-Identifier: Apache-2.0
// The arithmetic kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/elementwise/binary-inl.h"

namespace cyb {

extern const BinaryKernels kBinary_avx2;
constexpr BinaryKernels kTable = CYB_SIMD::make_binary_kernels();
const BinaryKernels kBinary_avx2 = kTable;

}  // namespace cyb
