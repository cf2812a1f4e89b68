// SPDX-License-Identifier: Apache-2.0
// Transposition in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/shape/transpose-inl.h"

namespace cyb {

extern const Transpose32 kTranspose_avx2;
const Transpose32 kTranspose_avx2 = CYB_SIMD::transpose;

}  // namespace cyb
