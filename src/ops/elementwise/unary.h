// SPDX-License-Identifier: Apache-2.0
// Unary arithmetic and mathematics over f32 on the CPU, the same bits on every instruction set; activations
// are in ops/activation.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

enum class UnaryOp : uint8_t {
  neg,
  abs,
  reciprocal,
  sqrt,
  floor,
  ceil,
  round,  // ties to even
  sign,
  log,
  sin,
  cos,
  clamp,     // min(max(x, alpha), beta)
  square,    // x·x
  cube,      // x·x·x
  softsign,  // x / (1 + |x|)
};

struct UnaryArgs {
  UnaryOp op = UnaryOp::neg;
  float alpha = 0, beta = 0;
  const float* x = nullptr;
  float* y = nullptr;  // may be x
};

struct UnaryKernels {
  void (*run)(const UnaryArgs&, int64_t begin, int64_t end);  // elements
};
const UnaryKernels& unary_kernels(Isa isa);

}  // namespace cyb
