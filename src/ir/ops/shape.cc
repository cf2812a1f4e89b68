// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

Dim& at(Dims& dims, int i) { return dims[static_cast<size_t>(i)]; }
Dim at(const Dims& dims, int i) { return dims[static_cast<size_t>(i)]; }

std::vector<int64_t> integers(const Tensor& t) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < t.elements(); i++) out.push_back(t.integer(static_cast<size_t>(i)));
  return out;
}

// How many entries a shape operand has, when its value is not known.
Type unknown_of_length(const InferContext& c, DType dtype, int operand) {
  Type t{dtype, {}};
  const Type& s = c.type(operand);
  if (s.rank() == 1 && s.dims[0].is_number() && s.dims[0].number() <= kMaxRank)
    t.dims.resize(static_cast<size_t>(s.dims[0].number()));
  else
    t.known_rank = false;
  return t;
}

}  // namespace

void rule_transpose(InferContext& c) {
  Type t = c.type(0);
  const auto& axes = c.attrs<AxesAttrs>().axes;
  c.require(axes.empty() || axes.size() == 2, "takes two axes");
  const int a = c.axis(axes.empty() ? -2 : axes[0], t.rank());
  const int b = c.axis(axes.empty() ? -1 : axes[1], t.rank());
  std::swap(at(t.dims, a), at(t.dims, b));
  c.result(0, t);
}

void rule_permute(InferContext& c) {
  const Type& x = c.type(0);
  const auto& axes = c.attrs<AxesAttrs>().axes;
  c.require(static_cast<int>(axes.size()) == x.rank(), "needs one axis for each of the operand's");
  Type t{x.dtype, {}};
  uint32_t seen = 0;
  for (int64_t axis : axes) {
    const int a = c.axis(axis, x.rank());
    seen |= 1u << a;
    t.dims.push_back(at(x.dims, a));
  }
  c.require(seen + 1 == 1u << x.rank(), "axes must be a permutation");
  c.result(0, t);
}

void rule_reshape(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<ReshapeAttrs>();
  std::vector<int64_t> wanted = a.shape;
  if (c.has(1)) {
    const Tensor* value = c.host_value(1);
    if (!value) return c.result(0, unknown_of_length(c, x.dtype, 1));
    wanted = integers(*value);
  }
  Type t{x.dtype, {}};
  int left = -1;
  Dim known = 1;
  // Axes that are kept cancel out of the product, so that symbols need no arithmetic.
  Dim rest = 1;
  std::vector<bool> kept(x.dims.size(), false);
  for (size_t i = 0; i < wanted.size(); i++) {
    const int64_t w = wanted[i];
    if (w == -1) {
      c.require(left < 0, "only one axis may be −1");
      left = static_cast<int>(i);
      t.dims.emplace_back();
    } else if (w == 0 && !a.allow_zero) {
      c.require(i < x.dims.size(), "0 keeps an axis that the operand has not");
      t.dims.push_back(x.dims[i]);
      kept[i] = true;
    } else {
      c.require(w >= 0, "an axis below −1");
      t.dims.emplace_back(w);
      known = known * Dim(w);
    }
  }
  for (size_t i = 0; i < x.dims.size(); i++)
    if (!kept[i]) rest = rest * x.dims[i];
  if (left >= 0) {
    if (rest.is_number() && known.is_number() && known.number() > 0) {
      c.require(rest.number() % known.number() == 0,
                fmt::format("{} elements do not fill rows of {}", rest.number(), known.number()));
      at(t.dims, left) = rest.number() / known.number();
    } else if (known == Dim(1)) {
      at(t.dims, left) = rest;
    } else if (known == Dim(0)) {
      at(t.dims, left) = 0;
    }
  } else if (rest.is_number() && known.is_number()) {
    c.require(rest.number() == known.number(),
              fmt::format("{} elements do not become {}", rest.number(), known.number()));
  }
  c.result(0, t);
}

void rule_concat(InferContext& c) {
  Type t = c.type(0);
  const int axis = c.axis(c.attrs<AxisAttrs>().axis, t.rank());
  for (int i = 1; i < c.operands(); i++) {
    const Type& x = c.type(i);
    c.require(x.rank() == t.rank() && x.dtype == t.dtype, "operands differ in rank or element type");
    for (int d = 0; d < t.rank(); d++)
      at(t.dims, d) =
          d == axis ? at(t.dims, d) + at(x.dims, d) : c.same(at(t.dims, d), at(x.dims, d), "axes");
  }
  c.result(0, t);
}

void rule_split(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<SplitAttrs>();
  const int axis = c.axis(a.axis, x.rank());
  const int parts = static_cast<int>(c.node().results.size());
  c.require(a.sizes.empty() || static_cast<int>(a.sizes.size()) == parts, "one size for each result");
  int64_t sum = 0;
  for (int64_t s : a.sizes) {
    c.require(s >= 0, "a negative size");
    sum += s;
  }
  const Dim whole = at(x.dims, axis);
  if (!a.sizes.empty() && whole.is_number())
    c.require(whole.number() == sum, "sizes do not add up to the axis");
  if (a.sizes.empty() && whole.is_number())
    c.require(whole.number() % parts == 0, "the axis does not split evenly");
  for (int i = 0; i < parts; i++) {
    Type t = x;
    at(t.dims, axis) = !a.sizes.empty()    ? Dim(a.sizes[static_cast<size_t>(i)])
                       : whole.is_number() ? Dim(whole.number() / parts)
                                           : Dim();
    c.result(i, t);
  }
}

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
  for (size_t i = 0; i < n; i++) {
    const int axis = c.axis(axes ? axes->integer(i) : static_cast<int64_t>(i), x.rank());
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
  if (!shape) {
    Type t = unknown_of_length(c, c.type(0).dtype, 1);
    return c.result(0, t);
  }
  Dims wanted;
  for (int64_t d : integers(*shape)) {
    c.require(d >= 0, "a negative axis");
    wanted.emplace_back(d);
  }
  c.result(0, {c.type(0).dtype, c.broadcast(c.type(0).dims, wanted)});
}

void rule_range(InferContext& c) {
  const Tensor* start = c.host_value(0);
  const Tensor* limit = c.host_value(1);
  const Tensor* step = c.host_value(2);
  Type t{c.type(0).dtype, {Dim()}};
  if (start && limit && step) {
    const double by = step->real(0);
    c.require(by != 0, "a step of 0");
    const double n = std::ceil((limit->real(0) - start->real(0)) / by);
    c.require(n < 1e12, "too many elements");
    t.dims[0] = std::max<int64_t>(0, static_cast<int64_t>(n));
  }
  c.result(0, t);
}

void rule_shape_of(InferContext& c) { c.result(0, {DType::i64, {Dim(c.type(0).rank())}}); }

void rule_unsqueeze(InferContext& c) {
  const Type& x = c.type(0);
  const auto& axes = c.attrs<AxesAttrs>().axes;
  const int rank = x.rank() + static_cast<int>(axes.size());
  uint32_t one = 0;
  for (int64_t axis : axes) one |= 1u << c.axis(axis, rank);
  Type t{x.dtype, {}};
  int next = 0;
  for (int i = 0; i < rank; i++) {
    if (one >> i & 1) {
      t.dims.emplace_back(1);
    } else {
      c.require(next < x.rank(), "an axis is given twice");
      t.dims.push_back(at(x.dims, next++));
    }
  }
  c.result(0, t);
}

void rule_squeeze(InferContext& c) {
  const Type& x = c.type(0);
  uint32_t drop = 0;
  const auto& axes = c.attrs<AxesAttrs>().axes;
  for (int64_t axis : axes) {
    const int a = c.axis(axis, x.rank());
    if (at(x.dims, a).is_number()) c.require(at(x.dims, a).number() == 1, "the axis is not 1");
    drop |= 1u << a;
  }
  if (axes.empty())
    for (int i = 0; i < x.rank(); i++)
      if (at(x.dims, i) == Dim(1)) drop |= 1u << i;
  Type t{x.dtype, {}};
  for (int i = 0; i < x.rank(); i++)
    if (!(drop >> i & 1)) t.dims.push_back(at(x.dims, i));
  c.result(0, t);
}

}  // namespace cyb::ir
