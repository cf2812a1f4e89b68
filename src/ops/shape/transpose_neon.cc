// SPDX-License-Identifier: Apache-2.0
// Transposition in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/shape/transpose-inl.h"

namespace cyb {

extern const Transpose32 kTranspose_neon;
const Transpose32 kTranspose_neon = CYB_SIMD::transpose;

}  // namespace cyb
