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

}  // namespace cyb::cpu
