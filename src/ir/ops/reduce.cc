// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"
#include "ir/ops/lists.h"
#include "ir/ops/rules.h"

namespace cyb::ir {

void rule_reduce(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<ReduceAttrs>();
  std::vector<int64_t> axes = a.axes;
  if (axes.empty() && c.has(1)) {
    const Tensor* value = c.host_value(1);
    if (!value) {
      const int64_t n = length_of(c, 1);
      const bool empty = n == 0, all = empty && !a.noop_empty;
      if (empty && !all) return c.result(0, x);
      if (a.keep && all) return c.result(0, {x.dtype, Dims(x.dims.size(), Dim(1))});
      return c.result(0, open_type(x.dtype, a.keep ? x.rank() : all ? 0 : n < 0 ? -1 : x.rank() - n));
    }
    axes = integers(*value);
  }
  uint32_t over = 0;
  for (int64_t axis : axes) unique_axis(c, axis, x.rank(), &over);
  if (axes.empty() && !a.noop_empty) over = ~0u;
  Type t{x.dtype, {}};
  for (int i = 0; i < x.rank(); i++) {
    if (!(over >> i & 1))
      t.dims.push_back(x.dims[static_cast<size_t>(i)]);
    else if (a.keep)
      t.dims.emplace_back(1);
  }
  c.result(0, t);
}

void rule_argmax(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<ArgAttrs>();
  const int axis = c.axis(a.axis, x.rank());
  Type t{DType::i64, x.dims};
  Dim& d = t.dims[static_cast<size_t>(axis)];
  c.require(d != Dim(0), "nothing to choose from");
  if (a.keep)
    d = 1;
  else
    t.dims.erase(t.dims.begin() + axis);
  c.result(0, t);
}

void rule_top_k(InferContext& c) {
  Type t = c.type(0);
  const auto& a = c.attrs<TopKAttrs>();
  Dim& d = t.dims[static_cast<size_t>(c.axis(a.axis, t.rank()))];
  Dim k = a.k;
  if (c.has(1)) {
    const Tensor* value = c.host_value(1);
    c.require(!value || value->elements() == 1, "k must be one number");
    k = value ? Dim(value->integer(0)) : Dim();
    c.require(!value || value->integer(0) >= 0, "k is negative");
  }
  c.require(a.k >= 0, "k is negative");
  c.require(!d.is_number() || !k.is_number() || k.number() <= d.number(), "k is larger than the axis");
  d = k;
  c.result(0, t);
  t.dtype = DType::i64;
  c.result(1, t);
}

void rule_cumulative(InferContext& c) {
  const Type& x = c.type(0);
  if (c.has(1)) {
    const Tensor* value = c.host_value(1);
    c.require(!value || value->elements() == 1, "takes one axis");
    if (value) c.axis(value->integer(0), x.rank());
  } else {
    c.axis(c.attrs<CumSumAttrs>().axis, x.rank());
  }
  c.result(0, x);
}

}  // namespace cyb::ir
