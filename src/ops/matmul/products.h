// SPDX-License-Identifier: Apache-2.0
// The products of one node, of the same activations: in 8 bits where the precision and the encoding allow.
#pragma once

#include "backend/cpu/kernel.h"
#include "ops/matmul/plan.h"

namespace cyb::cpu {

struct Product {
  const WeightMatrix* w = nullptr;
  const float* bias = nullptr;
  float* y = nullptr;
  const float* residual = nullptr;
  Activation activation = Activation::identity;
};

class Products {
 public:
  // What `scratch` must hold.
  static uint64_t scratch_bytes(const Call& c);

  // `x` is of the shape of the call's first operand. All places stay as they are, and the call its pool.
  Products(const Call& c, Isa isa, std::span<const Product> list, const float* x, uint8_t* scratch);
  void run(ThreadPool& pool) const;

 private:
  const MatmulKernels& kernels_;
  const float* x_;
  int64_t m_, k_;
  uint8_t* scratch_;
  uint64_t copy_bytes_;  // of the activations in 8 bits
  int64_t copies_ = 0;   // 0: no product takes such
  MatmulPlan plan_;
};

}  // namespace cyb::cpu
