// SPDX-License-Identifier: Apache-2.0
// One step of a tile of sums, as all convolutions take it.
#pragma once

#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// acc[i][j] += *at(i) · u[j]. Every third row is broadcast by the multiply-add itself, because many
// processors take in hardly more instructions than two multiply-adds a cycle leave room for.
template <int ROWS, int VECTORS, class At>
CYB_INLINE void fma_rows(Vec (&acc)[ROWS][VECTORS], const Vec (&u)[VECTORS], At&& at) {
  CYB_UNROLL for (int i = 0; i < ROWS; ++i) {
    const float* p = at(i);
    if (VECTORS > 1 && i % 3 == 0) {
      CYB_UNROLL for (int j = 0; j < VECTORS; ++j) fma_broadcast(acc[i][j], u[j], p);
      continue;
    }
    const Vec v = set1(*p);
    CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] = fma(v, u[j], acc[i][j]);
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
