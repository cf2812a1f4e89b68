// SPDX-License-Identifier: Apache-2.0
// Operators that take parts of a tensor, repeat it, give it borders or make one.
#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/lists.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {
constexpr int64_t kMostElements = int64_t{1} << 40;
}  // namespace

void rule_slice(InferContext& c) {
  const Type& x = c.type(0);
  Type t = x;
  const Tensor* starts = c.host_value(1);
  const Tensor* ends = c.host_value(2);
  const Tensor* axes = c.host_value(3);
  const Tensor* steps = c.host_value(4);
  const bool known = starts && ends && (!c.has(3) || axes) && (!c.has(4) || steps);
  if (!known) {
    if (axes)
      for (int64_t axis : integers(*axes)) at(t.dims, c.axis(axis, x.rank())) = Dim();
    else
      for (Dim& d : t.dims) d = Dim();
    return c.result(0, t);
  }
  const auto n = static_cast<size_t>(starts->elements());
  c.require(ends->elements() == starts->elements() && (!axes || axes->elements() == starts->elements()) &&
                (!steps || steps->elements() == starts->elements()),
            "starts, ends, axes and steps differ in length");
  uint32_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    const int axis = unique_axis(c, axes ? axes->integer(i) : static_cast<int64_t>(i), x.rank(), &seen);
    const int64_t step = steps ? steps->integer(i) : 1;
    c.require(step != 0, "a step of 0");
    if (!at(x.dims, axis).is_number()) {
      const bool all = step == 1 && starts->integer(i) == 0 && ends->integer(i) >= (int64_t{1} << 31);
      if (!all) at(t.dims, axis) = Dim();
      continue;
    }
    const SliceBounds b = slice_bounds(at(x.dims, axis).number(), starts->integer(i), ends->integer(i), step);
    at(t.dims, axis) = b.count;
  }
  c.result(0, t);
}

SliceBounds slice_bounds(int64_t length, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += length;
  if (end < 0 && end >= -length)
    end += length;
  else if (end < 0)
    end = step > 0 ? 0 : -1;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, length);
    end = std::clamp<int64_t>(end, 0, length);
    return {start, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(start, -1, length - 1);
  end = std::clamp<int64_t>(end, -1, length - 1);
  // −step may overflow for the smallest integer; counts then are at most one anyway.
  const int64_t back = step == INT64_MIN ? INT64_MAX : -step;
  return {start, start > end ? (start - end - 1) / back + 1 : 0};
}

void rule_expand(InferContext& c) {
  const Tensor* shape = c.host_value(1);
  const Type& x = c.type(0);
  Dims wanted;
  if (shape) {
    for (int64_t d : integers(*shape)) {
      c.require(d >= 0, "a negative axis");
      wanted.emplace_back(d);
    }
  } else {
    const int64_t rank = length_of(c, 1);
    if (rank < 0) return c.result(0, open_type(x.dtype, -1));
    c.require(rank <= kMaxRank, "too many axes");
    wanted.resize(static_cast<size_t>(rank));
  }
  c.result(0, {x.dtype, c.broadcast(x.dims, wanted)});
}

void rule_tile(InferContext& c) {
  Type t = c.type(0);
  const Tensor* repeats = c.host_value(1);
  const int64_t length = repeats ? repeats->elements() : length_of(c, 1);
  c.require(length < 0 || length == t.rank(), "needs a count for each axis");
  for (int i = 0; i < t.rank(); i++) {
    if (!repeats) {
      at(t.dims, i) = at(t.dims, i) == Dim(0) ? Dim(0) : Dim();
      continue;
    }
    const int64_t n = repeats->integer(static_cast<size_t>(i));
    c.require(n >= 0 && n < kMostElements, "a count out of range");
    if (at(t.dims, i).is_number())
      c.require(n == 0 || at(t.dims, i).number() <= kMostElements / n, "too large");
    at(t.dims, i) = at(t.dims, i) * Dim(n);
  }
  c.result(0, t);
}

void rule_pad(InferContext& c) {
  Type t = c.type(0);
  const Tensor* pads = c.host_value(1);
  const Tensor* axes = c.host_value(3);
  if (c.has(2)) c.require(c.type(2).dtype == t.dtype, "the value has another element type");
  if (!pads || (c.has(3) && !axes)) {
    if (!axes)
      for (Dim& d : t.dims) d = Dim();
    else
      for (int64_t axis : integers(*axes)) at(t.dims, c.axis(axis, t.rank())) = Dim();
    return c.result(0, t);
  }
  const auto n = static_cast<size_t>(axes ? axes->elements() : t.rank());
  c.require(pads->elements() == static_cast<int64_t>(2 * n), "pads and axes differ in length");
  uint32_t seen = 0;
  for (size_t i = 0; i < n; i++) {
    const int axis = unique_axis(c, axes ? axes->integer(i) : static_cast<int64_t>(i), t.rank(), &seen);
    const int64_t before = pads->integer(i), after = pads->integer(i + n);
    c.require(
        before < kMostElements && after < kMostElements && before > -kMostElements && after > -kMostElements,
        "a border out of range");
    Dim& d = at(t.dims, axis);
    if (before == 0 && after == 0) continue;
    if (!d.is_number()) {
      d = Dim();
      continue;
    }
    const int64_t inner = d.number() + std::min<int64_t>(before, 0) + std::min<int64_t>(after, 0);
    c.require(inner >= 0, "borders take away more than there is");
    const int64_t outer = std::max<int64_t>(before, 0) + std::max<int64_t>(after, 0);
    c.require(inner > 0 || outer == 0 || c.attrs<PadAttrs>().mode == PadMode::constant,
              "there is nothing to fill borders from");
    d = inner + outer;
  }
  c.result(0, t);
}

void rule_trilu(InferContext& c) {
  c.require(c.type(0).rank() >= 2, "needs two axes");
  c.result(0, c.type(0));
}

void rule_range(InferContext& c) {
  const Type& type = c.type(0);
  for (int i = 1; i < 3; i++) c.require(c.type(i).dtype == type.dtype, "element types differ");
  const Tensor* start = c.host_value(0);
  const Tensor* limit = c.host_value(1);
  const Tensor* step = c.host_value(2);
  Type t{type.dtype, {Dim()}};
  if (start && limit && step) {
    c.require(start->elements() == 1 && limit->elements() == 1 && step->elements() == 1, "takes scalars");
    const double by = step->real(0);
    c.require(by != 0, "a step of 0");
    double n = std::ceil((limit->real(0) - start->real(0)) / by);
    if (!is_float(type.dtype)) {  // exact, also where f64 is not
      const __int128 s = step->integer(0),
                     span = static_cast<__int128>(limit->integer(0)) - start->integer(0);
      n = static_cast<double>(span / s + (span % s != 0 && (span < 0) == (s < 0) ? 1 : 0));
    }
    c.require(n < static_cast<double>(kMostElements), "too many elements");
    t.dims[0] = n > 0 ? static_cast<int64_t>(n) : 0;
  }
  c.result(0, t);
}

}  // namespace cyb::ir
