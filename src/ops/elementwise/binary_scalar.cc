// SPDX-License-Identifier: Apache-2.0
// The arithmetic kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/elementwise/binary-inl.h"

namespace cyb {

extern const BinaryKernels kBinary_scalar;
constexpr BinaryKernels kTable = CYB_SIMD::make_binary_kernels();
const BinaryKernels kBinary_scalar = kTable;

}  // namespace cyb
