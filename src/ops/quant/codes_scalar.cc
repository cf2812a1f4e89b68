// SPDX-License-Identifier: Apache-2.0
// The code kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_scalar;
constexpr CodeKernels kTable = CYB_SIMD::make_code_kernels();
const CodeKernels kCode_scalar = kTable;

}  // namespace cyb
