// SPDX-License-Identifier: Apache-2.0
// For the rules of shape operators: host operands as integers, and what can be told without them.
#pragma once

#include <vector>

#include "ir/infer.h"

namespace cyb::ir {

inline Dim& at(Dims& dims, int i) { return dims[static_cast<size_t>(i)]; }
inline Dim at(const Dims& dims, int i) { return dims[static_cast<size_t>(i)]; }

inline std::vector<int64_t> integers(const Tensor& t) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < t.elements(); i++) out.push_back(t.integer(static_cast<size_t>(i)));
  return out;
}

// How many entries operand i, a list, has: −1 where that is open.
inline int64_t length_of(const InferContext& c, int i) {
  const Type& t = c.type(i);
  if (!t.known_rank) return -1;
  Dim n = 1;
  for (Dim d : t.dims) n = n * d;
  return n.is_number() ? n.number() : -1;
}

// Axis `axis` of an operand of rank `rank`, which may be named once: `seen` collects them.
inline int unique_axis(const InferContext& c, int64_t axis, int rank, uint32_t* seen) {
  const int a = c.axis(axis, rank);
  c.require(!(*seen >> a & 1), "an axis is given twice");
  *seen |= 1u << a;
  return a;
}

// A type of which only the rank is known (or not even that, where it is negative).
inline Type open_type(DType dtype, int64_t rank) {
  Type t{dtype, {}};
  t.known_rank = rank >= 0 && rank <= kMaxRank;
  if (t.known_rank) t.dims.resize(static_cast<size_t>(rank));
  return t;
}

}  // namespace cyb::ir
