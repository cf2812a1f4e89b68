// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ops/matmul/matmul.h"

namespace cyb {

// How a product is cut into tiles. No cut changes a bit, so this is only about caches and balance.
struct MatmulCut {
  int64_t rows, groups;  // of a tile
  int64_t row_tiles, group_tiles;
  int64_t tiles() const { return row_tiles * group_tiles; }
};

// Whole products, several of which (query, key, value) share one fork: cut into tiles once, to be run often.
class MatmulPlan {
 public:
  MatmulPlan() = default;
  // For a pool of so many threads. With `xq_copy` each thread reads a copy of its own of xq: so many bytes
  // behind that of the thread before it.
  MatmulPlan(const MatmulKernels& kernels, std::span<const MatmulArgs> products, int threads,
             int64_t xq_copy = 0);
  void run(ThreadPool& pool) const;

 private:
  struct alignas(64) Product {
    MatmulArgs args;
    MatmulCut cut;
  };
  const MatmulKernels* kernels_ = nullptr;
  std::vector<Product> products_;  // [thread][product], or for all threads [product]
  size_t count_ = 0;               // of products
  int64_t tiles_ = 0;
  bool own_ = false;  // each thread has products of its own
};

}  // namespace cyb
