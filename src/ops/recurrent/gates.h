// SPDX-License-Identifier: Apache-2.0
// What recurrent layers do with their products: activations and the new state of one row, on vectors of
// sixteen; the same bits on every instruction set and for any cut of the units.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

// In the order of ir::RecurrentFunction.
enum class GateKind {
  sigmoid,
  tanh,
  relu,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus,
  // By rational functions, as onnxruntime defines its 8-bit layers: what is rounded to 8 bits again should
  // not differ from it where that can be helped.
  rational_sigmoid,
  rational_tanh
};
struct GateFunction {
  GateKind kind = GateKind::sigmoid;
  float alpha = 0, beta = 0;
};

struct GateArgs {
  int64_t hidden = 0;
  GateFunction f[3];
  float clip = 0;  // 0: none
  bool input_forget = false, linear_before_reset = false;
  const float* peepholes = nullptr;  // LSTM: [3·H] i o f
  // LSTM: added to the sum of both products, [4·H] each; null: they hold them already.
  const float *bias_w = nullptr, *bias_r = nullptr;
  // Of one row: products with biases [gates·H], the state before and after.
  const float* input = nullptr;
  const float* recurrent = nullptr;
  const float* h_before = nullptr;
  float* h = nullptr;
  float* c = nullptr;       // LSTM, in place
  float* update = nullptr;  // GRU: z between its two stages
  float* scaled = nullptr;  // GRU: r·h
};

// Columns of a state product: a panel holds [K][64] of the transposed weights, zeros beyond.
constexpr int kStateColumns = 64;

struct PanelArgs {
  const float* panel = nullptr;
  int64_t k = 0, count = 0;  // columns that count
  const float* x = nullptr;  // rows of K, `x_row` apart
  int64_t rows = 0, x_row = 0;
  const float* bias = nullptr;  // [count], or null
  float* y = nullptr;
  int64_t y_row = 0;
};

struct GateKernels {
  // y = x · panel + bias, each value the chain that ops/matmul/matmul.h defines.
  void (*panel)(const PanelArgs&);

  void (*lstm)(const GateArgs&, int64_t begin, int64_t end);  // units
  // GRU: z and r·h; then the new state from the product with r·h in the last third of `recurrent`. With
  // linear_before_reset `gru` does both.
  void (*gru_reset)(const GateArgs&, int64_t begin, int64_t end);
  void (*gru_output)(const GateArgs&, int64_t begin, int64_t end);
  void (*gru)(const GateArgs&, int64_t begin, int64_t end);
  void (*rnn)(const GateArgs&, int64_t begin, int64_t end);
};

const GateKernels& gate_kernels(Isa isa);

}  // namespace cyb
