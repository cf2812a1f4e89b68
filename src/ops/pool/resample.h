// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows, the inner step of resampling along any axis but the last; the same bits everywhere.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

struct ResampleKernels {
  // y[i] = Σ w[t] · x[index[t] · row + i] for i < n, one chain of fma from w[0]·x over ascending t.
  void (*rows)(const float* x, int64_t row, const int64_t* index, const float* w, int64_t taps, int64_t n,
               float* y);
};

const ResampleKernels& resample_kernels(Isa isa);

}  // namespace cyb
