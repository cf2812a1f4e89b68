// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/ops/common.h"
#include "ir/ops/lists.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
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
    if (!value) return c.result(0, open_type(x.dtype, length_of(c, 1)));
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
  const auto parts = static_cast<int64_t>(c.node().results.size());
  const Dim whole = at(x.dims, axis);
  std::vector<int64_t> sizes = a.sizes;
  const bool given = !sizes.empty() || c.has(1);
  if (sizes.empty() && c.has(1))
    if (const Tensor* value = c.host_value(1)) {
      sizes = integers(*value);
      c.require(!sizes.empty(), "there are no sizes");
    }
  if (!given && whole.is_number()) {
    const int64_t part = (whole.number() + parts - 1) / parts;
    for (int64_t i = 0; i < parts; i++)
      sizes.push_back(std::clamp<int64_t>(whole.number() - i * part, 0, part));
  }
  if (!sizes.empty()) {
    c.require(static_cast<int64_t>(sizes.size()) == parts, "one size for each result");
    Dim sum = 0;
    for (int64_t size : sizes) {
      c.require(size >= 0 && size <= INT64_MAX / parts, "a negative size");
      sum = sum + Dim(size);
    }
    c.require(!whole.is_number() || whole == sum, "sizes do not add up to the axis");
  }
  for (int i = 0; i < static_cast<int>(parts); i++) {
    Type t = x;
    at(t.dims, axis) = sizes.empty() ? (parts == 1 ? whole : Dim()) : Dim(sizes[static_cast<size_t>(i)]);
    c.result(i, t);
  }
}

void rule_shape_of(InferContext& c) { c.result(0, {DType::i64, {Dim(c.type(0).rank())}}); }

void rule_unsqueeze(InferContext& c) {
  const Type& x = c.type(0);
  std::vector<int64_t> axes = c.attrs<AxesAttrs>().axes;
  if (c.has(1)) {
    const Tensor* value = c.host_value(1);
    const int64_t more = value ? value->elements() : length_of(c, 1);
    if (!value) return c.result(0, open_type(x.dtype, more < 0 ? -1 : x.rank() + more));
    axes = integers(*value);
  }
  c.require(axes.size() <= kMaxRank, "too many axes");
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
  std::vector<int64_t> axes = c.attrs<AxesAttrs>().axes;
  if (c.has(1)) {
    const Tensor* value = c.host_value(1);
    const int64_t less = value ? value->elements() : length_of(c, 1);
    if (!value) return c.result(0, open_type(x.dtype, less <= 0 || less > x.rank() ? -1 : x.rank() - less));
    axes = integers(*value);
  }
  uint32_t drop = 0;
  for (int64_t axis : axes) {
    const int a = c.axis(axis, x.rank());
    if (at(x.dims, a).is_number()) c.require(at(x.dims, a).number() == 1, "the axis is not 1");
    drop |= 1u << a;
  }
  if (axes.empty())
    for (int i = 0; i < x.rank(); i++) {
      // An axis that may or may not be 1 leaves the rank open.
      if (!at(x.dims, i).is_number()) return c.result(0, open_type(x.dtype, -1));
      if (at(x.dims, i) == Dim(1)) drop |= 1u << i;
    }
  Type t{x.dtype, {}};
  for (int i = 0; i < x.rank(); i++)
    if (!(drop >> i & 1)) t.dims.push_back(at(x.dims, i));
  c.result(0, t);
}

}  // namespace cyb::ir
