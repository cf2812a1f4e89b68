// SPDX-License-Identifier: Apache-2.0
// The code kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_avx512;
constexpr CodeKernels kTable = CYB_SIMD::make_code_kernels();
const CodeKernels kCode_avx512 = kTable;

}  // namespace cyb
