// SPDX-License-Identifier: Apache-2.0
// The steps of a recurrent layer in f32, whatever makes its products.
#pragma once

#include "ops/recurrent/cells.h"
#include "ops/recurrent/gates.h"

namespace cyb::cpu {

struct LayerPlan {
  RecurrentShape shape;
  std::vector<ir::RecurrentFunction> functions;  // of all directions
  int per_direction = 3;
  // Floats in the scratch, for each direction: products with the input [T·B, gates·H]; products with the
  // state [B, gates·H]; two states h, c, z and r·h [B, H].
  int64_t input_floats = 0, step_floats = 0;
  uint64_t bytes = 0;

  float* input(const Call& c, int64_t direction) const {
    return reinterpret_cast<float*>(c.scratch) + direction * (input_floats + step_floats);
  }
};
LayerPlan layer_plan(const Call& call);

// Makes products of a state [B, H] of a direction with gates [first, last), units [begin, end), biases added
// (but DynamicQuantizeLstm's, which the gates add): into [B, gates·H]. Threads call it for different
// directions, or for different units of one step.
class StateProduct {
 public:
  virtual ~StateProduct() = default;
  virtual void run(int64_t direction, const float* h, int64_t first, int64_t last, int64_t begin, int64_t end,
                   float* out) const = 0;
};

// The products with the input are in their place. `whole`: a step is not shared among threads.
void run_layer(Call& call, const LayerPlan& plan, const GateKernels& kernels, const StateProduct& product,
               bool whole = false);

}  // namespace cyb::cpu
