// SPDX-License-Identifier: Apache-2.0
// What the kernels of recurrent layers share: the operands' sizes and the activations by name.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernel.h"
#include "ir/ops/recurrent.h"

namespace cyb::cpu {

struct RecurrentShape {
  int64_t length = 0, batch = 0, inputs = 0, hidden = 0;
  int64_t directions = 1, gates = 4;
  bool batch_first = false;
  // Elements from one step, row and direction to the next.
  int64_t x_step = 0, x_row = 0;
  int64_t y_step = 0, y_row = 0, y_direction = 0;
  int64_t state_row = 0, state_direction = 0;
  bool backward(int64_t direction, ir::Direction d) const {
    return d == ir::Direction::reverse || direction == 1;
  }
};
RecurrentShape recurrent_shape(const Call& call);

// Steps of row b: what the operand says, within [0, length].
int64_t steps_of(const Call& call, const RecurrentShape& shape, int64_t row);

double apply(const ir::RecurrentFunction& f, double x);

// One unit of an LSTM: gate(i) gives the sum of gate i (i o f c), peephole(i, cell) what a peephole adds (i o
// f). Returns the new cell, and the new state to `h`.
template <class Gate, class Peephole, class T>
double lstm_unit(const ir::RecurrentAttrs& a, const ir::RecurrentFunction* f, Gate&& gate,
                 Peephole&& peephole, double cell, T* h) {
  auto clipped = [&](double v) { return a.clip > 0 ? v < -a.clip ? -a.clip : v > a.clip ? a.clip : v : v; };
  const double in = apply(f[0], clipped(gate(0) + peephole(0, cell)));
  const double forget = a.input_forget ? 1 - in : apply(f[0], clipped(gate(2) + peephole(2, cell)));
  cell = forget * cell + in * apply(f[1], clipped(gate(3)));
  const double out = apply(f[0], clipped(gate(1) + peephole(1, cell)));
  *h = static_cast<T>(out * apply(f[2], cell));
  return cell;
}

}  // namespace cyb::cpu
