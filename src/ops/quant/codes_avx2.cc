// SPDX-License-Identifier: Apache-2.0
// The code kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_avx2;
constexpr CodeKernels kTable = CYB_SIMD::make_code_kernels();
const CodeKernels kCode_avx2 = kTable;

}  // namespace cyb
