// SPDX-License-Identifier: Apache-2.0
// The arithmetic kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/elementwise/binary-inl.h"

namespace cyb {

extern const BinaryKernels kBinary_avx512;
constexpr BinaryKernels kTable = CYB_SIMD::make_binary_kernels();
const BinaryKernels kBinary_avx512 = kTable;

}  // namespace cyb
