// SPDX-License-Identifier: Apache-2.0
// Transposition in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/shape/transpose-inl.h"

namespace cyb {

extern const Transpose32 kTranspose_avx512;
const Transpose32 kTranspose_avx512 = CYB_SIMD::transpose;

}  // namespace cyb
