// SPDX-License-Identifier: Apache-2.0
// One step of a tile of sums, as all convolutions take it.
#pragma once

#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// f(1) … of the heights that tiles may have, to be cut by each kernel's own limit.
#ifndef CYB_SIMD_TARGET
#define CYB_TILE_ROWS(f) f(1) f(2) f(3) f(4)
#elif CYB_SIMD_TARGET == HWY_AVX3
#define CYB_TILE_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12)
#else
#define CYB_TILE_ROWS(f) f(1) f(2) f(3) f(4) f(5) f(6)
#endif

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
