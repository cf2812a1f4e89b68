// SPDX-License-Identifier: Apache-2.0
// What the benchmarks of products share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/aligned_array.h"
#include "ops/matmul/plan.h"

namespace cyb {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One product with its operands. `copies` of the weights, so that each call finds them in no cache.
struct Product {
  // As a mapped model and the backend's buffers: aligned, in large pages where there are some.
  AlignedArray<uint8_t> weights;
  AlignedArray<float> x, y;
  AlignedArray<Q8Block> blocks;
  std::vector<MatmulPlan> plans;  // of each copy of the weights
  size_t each = 0, copies = 1, turn = 0;
  MatmulArgs args;
  Encoding encoding;

  Product(ThreadPool& pool, const MatmulKernels& kernels, Encoding e, bool eight_bit, int64_t m, int64_t n,
          int64_t k, size_t count)
      : copies(count), encoding(e) {
    each = (weight_bytes(e, n, k, true) + 4095) / 4096 * 4096;
    weights = make_aligned<uint8_t>(each * copies);
    for (size_t i = 0; i < each * copies; i++)
      weights[i] = static_cast<uint8_t>((i * 2654435761u) >> 24 & 0x55);
    const auto x_size = static_cast<size_t>(m * k);
    x = make_aligned<float>(x_size);
    y = make_aligned<float>(static_cast<size_t>(m * n));
    for (size_t i = 0; i < x_size; i++) x[i] = static_cast<float>(i % 255) - 127;
    args.m = m;
    args.x = x.get();
    args.ldx = k;
    if (eight_bit) {
      blocks = make_aligned<Q8Block>(static_cast<size_t>(m * q8_row_stride(k)));
      quantize_rows(pool, kernels, x.get(), k, m, k, blocks.get());
      args.xq = blocks.get();
      args.ldxq = q8_row_stride(k);
    }
    args.y = y.get();
    args.ldy = n;
    args.w = weight_matrix(e, weights.get(), n, k, 15, true);
    plan(pool, kernels);
  }
  // Anew, where args changed.
  void plan(ThreadPool& pool, const MatmulKernels& kernels) {
    plans.clear();
    for (size_t i = 0; i < copies; i++) {
      args.w.data = weights.get() + i * each;
      plans.emplace_back(kernels, std::span<const MatmulArgs>(&args, 1), pool.threads());
    }
  }
  void run(ThreadPool& pool) { plans[turn++ % copies].run(pool); }
};

}  // namespace cyb
