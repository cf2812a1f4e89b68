// SPDX-License-Identifier: Apache-2.0
// The arithmetic kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/elementwise/binary-inl.h"

namespace cyb {

extern const BinaryKernels kBinary_neon;
constexpr BinaryKernels kTable = CYB_SIMD::make_binary_kernels();
const BinaryKernels kBinary_neon = kTable;

}  // namespace cyb
