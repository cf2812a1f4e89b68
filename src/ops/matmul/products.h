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
  // Of m rows of k activations: what add_rows' scratch must hold for them.
  static uint64_t scratch_bytes(const Call& c, int64_t m, int64_t k);

  // Whether plan() was called with this scratch.
  bool planned(const uint8_t* scratch) const { return kernels_ && scratch == scratch_; }
  // x, all y and the scratch stay where they are.
  void plan(const Call& c, Isa isa, const float* x, int64_t m, int64_t k, std::span<const Product> list,
            uint8_t* scratch);
  void run(ThreadPool& pool) const;

 private:
  const MatmulKernels* kernels_ = nullptr;
  const float* x_ = nullptr;
  int64_t m_ = 0, k_ = 0;
  uint8_t* scratch_ = nullptr;
  bool rounds_ = false;      // some product takes 8-bit activations
  uint64_t copy_bytes_ = 0;  // of the activations in 8 bits
  int64_t copies_ = 1;
  MatmulPlan plan_;
};

}  // namespace cyb::cpu
