// SPDX-License-Identifier: Apache-2.0
// Reductions of f32 along rows and down columns on the CPU: one order of adding, whatever the threads and the
// instruction set.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

enum class ReduceOp : uint8_t { sum, mean, product, max, min };

struct ReduceKernels {
  // Of n adjacent elements; n at most kReducePiece. The identity of the operator where there are none.
  float (*piece)(ReduceOp op, const float* x, int64_t n);
  // Down the middle axis of [n, inner], for `width` columns from x on: y[i] = reduction of x[k·inner + i].
  void (*columns)(ReduceOp op, const float* x, int64_t n, int64_t inner, int64_t width, float* y);
  // Index of the largest (smallest) of n adjacent elements, the first or the last of equals; the first NaN.
  int64_t (*arg)(const float* x, int64_t n, bool largest, bool last);
};
const ReduceKernels& reduce_kernels(Isa isa);

// Longer rows are cut in such pieces, whose results are joined in f64.
constexpr int64_t kReducePiece = 16384;
constexpr int64_t kReduceColumns = 64;  // `columns` is at its best with so many

}  // namespace cyb
