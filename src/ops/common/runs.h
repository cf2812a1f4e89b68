// SPDX-License-Identifier: Apache-2.0
// For fast kernels: broadcast operands cut into runs in which each operand advances by 0 or 1, so that loops
// over runs are plain.
#pragma once

#include <array>
#include <cstdint>

#include "tensor/shape.h"

namespace cyb::cpu {

template <size_t N>
struct RunPlan {
  int64_t inner = 1;            // elements of a run
  std::array<int64_t, N> step;  // 0 or 1: how operands advance in it
  int rank = 0;                 // axes above the run
  int64_t dims[kMaxRank] = {};
  std::array<int64_t, N> strides[kMaxRank] = {};
};

// Axes are merged where all operands allow. `shapes` broadcast to `out`.
template <size_t N>
RunPlan<N> plan_runs(const std::array<const Shape*, N>& shapes, const Shape& out) {
  struct Axis {
    int64_t n;
    std::array<int64_t, N> stride;
  } merged[kMaxRank];
  int count = 0;
  std::array<int64_t, N> dense;
  dense.fill(1);
  for (int i = 1; i <= out.rank(); i++) {
    Axis axis{out[out.rank() - i], {}};
    for (size_t k = 0; k < N; k++) {
      const Shape& s = *shapes[k];
      const int64_t n = i <= s.rank() ? s[s.rank() - i] : 1;
      axis.stride[k] = n == 1 ? 0 : dense[k];
      dense[k] *= n;
    }
    if (axis.n == 1) continue;
    bool joins = count > 0;
    for (size_t k = 0; k < N && joins; k++)
      joins = axis.stride[k] == merged[count - 1].stride[k] * merged[count - 1].n;
    if (joins)
      merged[count - 1].n *= axis.n;
    else
      merged[count++] = axis;
  }
  RunPlan<N> plan;
  plan.step.fill(0);
  int first = 0;
  bool plain = count > 0;
  for (size_t k = 0; k < N && plain; k++) plain = merged[0].stride[k] <= 1;
  if (plain) {
    plan.inner = merged[0].n;
    plan.step = merged[0].stride;
    first = 1;
  }
  for (int i = count; i-- > first;) {
    plan.dims[plan.rank] = merged[i].n;
    plan.strides[plan.rank++] = merged[i].stride;
  }
  return plan;
}

// f(offsets of the operands, first element of out, elements) over the elements [begin, end) of out.
template <size_t N, class F>
void for_runs(const RunPlan<N>& plan, int64_t begin, int64_t end, F&& f) {
  if (begin >= end) return;
  int64_t index[kMaxRank];
  std::array<int64_t, N> at{};
  int64_t inside = begin % plan.inner;
  int64_t run = begin / plan.inner;
  for (int a = plan.rank; a-- > 0; run /= plan.dims[a]) {
    index[a] = run % plan.dims[a];
    for (size_t k = 0; k < N; k++) at[k] += index[a] * plan.strides[a][k];
  }
  for (;;) {
    const int64_t n = plan.inner - inside < end - begin ? plan.inner - inside : end - begin;
    std::array<int64_t, N> from;
    for (size_t k = 0; k < N; k++) from[k] = at[k] + inside * plan.step[k];
    f(from, begin, n);
    begin += n;
    if (begin >= end) return;
    inside = 0;
    for (int a = plan.rank; a-- > 0;) {
      if (++index[a] < plan.dims[a]) {
        for (size_t k = 0; k < N; k++) at[k] += plan.strides[a][k];
        break;
      }
      for (size_t k = 0; k < N; k++) at[k] -= plan.strides[a][k] * (plan.dims[a] - 1);
      index[a] = 0;
    }
  }
}

}  // namespace cyb::cpu
