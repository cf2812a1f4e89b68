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
  // What the scratch must hold for m rows of k activations.
  static uint64_t scratch_bytes(const Call& c, int64_t m, int64_t k);

  // x, all y and the scratch stay where they are, and the call its pool.
  Products(const Call& c, Isa isa, const float* x, int64_t m, int64_t k, std::span<const Product> list,
           uint8_t* scratch);
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
