// SPDX-License-Identifier: Apache-2.0
// Activations, gated products, softmax and soft-cap over f32 on the CPU; the same bits on every instruction
// set and for any cut of the work.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

enum class Activation : uint8_t {
  identity,
  relu,
  relu6,
  relu_squared,
  leaky_relu,  // alpha·x below 0
  elu,         // alpha·(e^x - 1) below 0
  selu,        // beta·x, or beta·alpha·(e^x - 1) below 0
  silu,
  gelu_erf,
  gelu_tanh,
  gelu_quick,  // x·sigmoid(1.702·x)
  sigmoid,
  tanh,
  softplus,
  mish,
  hard_sigmoid,  // clamp(alpha·x + beta, 0, 1)
  hard_swish,    // x·clamp(x/6 + 1/2, 0, 1)
  exp,
  expm1,
  erf,
  soft_cap,  // alpha·tanh(x/alpha)
  clamp,     // from alpha to beta
};

// y[i] = act(x[i]) for n elements; y may be x.
struct ActivationArgs {
  Activation activation = Activation::identity;
  float alpha = 0, beta = 0;
  const float* x = nullptr;
  float* y = nullptr;
};

// y[r][i] = act(a[r][i])·b[r][i]: SwiGlu, GeGlu, Glu. Rows may be halves of one row; y may be a or b.
struct GatedArgs {
  Activation activation = Activation::silu;
  float alpha = 0, beta = 0;
  int64_t n = 0;
  const float *a = nullptr, *b = nullptr;
  int64_t a_stride = 0, b_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
};

// Rows of n, as IEEE has it: a row of -inf gives NaN. y may be x.
struct SoftmaxArgs {
  int64_t n = 0;
  const float* x = nullptr;
  int64_t x_stride = 0;
  float* y = nullptr;
  int64_t y_stride = 0;
  bool log = false;  // the logarithm of it
};

// Along the middle axis of [outer, n, inner]. Work is counted in groups: outer · groups_of(inner).
struct SoftmaxColumnsArgs {
  int64_t n = 0, inner = 1;
  const float* x = nullptr;
  float* y = nullptr;
  bool log = false;
  static int64_t groups_of(int64_t inner) { return (inner + 15) / 16; }
};

struct ActivationKernels {
  void (*activate)(const ActivationArgs&, int64_t begin, int64_t end);  // elements
  void (*gated)(const GatedArgs&, int64_t row_begin, int64_t row_end);
  void (*softmax)(const SoftmaxArgs&, int64_t row_begin, int64_t row_end);
  void (*softmax_columns)(const SoftmaxColumnsArgs&, int64_t group_begin, int64_t group_end);
};

const ActivationKernels& activation_kernels(Isa isa);

}  // namespace cyb
