// SPDX-License-Identifier: Apache-2.0
// Transposition in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/shape/transpose-inl.h"

namespace cyb {

extern const Transpose32 kTranspose_scalar;
const Transpose32 kTranspose_scalar = CYB_SIMD::transpose;

}  // namespace cyb
