// SPDX-License-Identifier: Apache-2.0
// Copies with strides: what Permute, Slice, Expand and Tile come down to. Runs of adjacent elements are
// copied as such, transpositions go by tiles, and large copies are shared by threads.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/shape.h"

namespace cyb {
enum class Isa;
}

namespace cyb::cpu {

constexpr int kCopyAxes = 2 * kMaxRank;

// y is dense [dims]; element (i…) of it is x[offset + Σ i·stride]. Strides may be 0 or negative.
struct CopyPlan {
  int64_t element = 4;  // bytes
  int64_t offset = 0;
  int rank = 0;
  int64_t dims[kCopyAxes] = {}, strides[kCopyAxes] = {};
  int across =
      -1;  // the axis whose neighbours are adjacent in x, where that is not the last: a transposition

  void push(int64_t dim, int64_t stride) {
    dims[rank] = dim;
    strides[rank++] = stride;
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    return n;
  }
};

// Drops axes of 1, merges axes that run on, and looks for a transposition.
void simplify(CopyPlan* plan);
void run_copy(const CopyPlan& plan, const void* x, void* y, ThreadPool& pool, Isa isa);

// A plain copy, shared by threads where it is large.
void copy_bytes(const void* x, void* y, int64_t bytes, ThreadPool& pool);

}  // namespace cyb::cpu
