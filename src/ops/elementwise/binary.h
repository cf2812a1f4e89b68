// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two f32 tensors with broadcasting, on the CPU.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

enum class BinaryOp : uint8_t { add, sub, mul, div, max, min, prelu };  // prelu: a, or a·b below 0

// y is dense; a and b have a stride for each axis of y, 0 where they are broadcast. binary_plan() fills it.
struct BinaryArgs {
  BinaryOp op = BinaryOp::add;
  const float *a = nullptr, *b = nullptr;
  float* y = nullptr;  // may be a or b where that one is not broadcast
  int64_t inner = 1;   // elements of a run; a and b advance by inner_a, inner_b (0 or 1) in it
  int64_t inner_a = 0, inner_b = 0;
  int32_t rank = 0;  // axes above the run
  int64_t runs = 1;  // product of dims
  int64_t dims[8] = {}, a_strides[8] = {}, b_strides[8] = {};
};

// Numpy's broadcasting of dense a [a_dims] with dense b [b_dims], axes merged where both allow; y_dims is
// filled with the result's max(a_rank, b_rank) axes. False where shapes do not fit or a rank exceeds 8.
bool binary_plan(const int64_t* a_dims, int a_rank, const int64_t* b_dims, int b_rank, BinaryArgs* args,
                 int64_t* y_dims);

struct BinaryKernels {
  void (*run)(const BinaryArgs&, int64_t begin, int64_t end);  // elements of y
};
const BinaryKernels& binary_kernels(Isa isa);

}  // namespace cyb
