// SPDX-License-Identifier: Apache-2.0
// resample.h on sixteen lanes.
#pragma once

#include "ops/pool/resample.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

static void resample_rows(const float* x, int64_t row, const int64_t* index, const float* w, int64_t taps,
                          int64_t n, float* y) {
  for (int64_t i = 0; i < n; i += 16) {
    const int64_t left = n - i;
    Vec sum = set1(w[0]) * load_first(x + index[0] * row + i, left);
    for (int64_t t = 1; t < taps; t++) sum = fma(set1(w[t]), load_first(x + index[t] * row + i, left), sum);
    store_first(y + i, sum, left);
  }
}

constexpr ResampleKernels make_resample_kernels() { return {resample_rows}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
