// SPDX-License-Identifier: Apache-2.0
// The code kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_neon;
constexpr CodeKernels kTable = CYB_SIMD::make_code_kernels();
const CodeKernels kCode_neon = kTable;

}  // namespace cyb
