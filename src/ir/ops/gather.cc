// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {

void rule_gather(InferContext& c) {
  const Type& x = c.type(0);
  const Type& i = c.type(1);
  c.require(i.dtype == DType::i32 || i.dtype == DType::i64, "indices must be i32 or i64");
  const int axis = c.axis(c.attrs<AxisAttrs>().axis, x.rank());
  Type t{x.dtype, {}};
  t.dims.insert(t.dims.end(), x.dims.begin(), x.dims.begin() + axis);
  t.dims.insert(t.dims.end(), i.dims.begin(), i.dims.end());
  t.dims.insert(t.dims.end(), x.dims.begin() + axis + 1, x.dims.end());
  c.result(0, t);
}

void rule_non_zero(InferContext& c) {
  const Tensor* x = c.host_value(0);
  Dim count;
  if (x) {
    int64_t n = 0;
    for (int64_t i = 0; i < x->elements(); i++) n += x->real(static_cast<size_t>(i)) != 0;
    count = n;
  }
  c.result(0, {DType::i64, {Dim(c.type(0).rank()), count}});
}

void rule_reduce(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<ReduceAttrs>();
  uint32_t over = a.axes.empty() ? ~0u : 0;
  for (int64_t axis : a.axes) over |= 1u << c.axis(axis, x.rank());
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
  if (a.keep)
    t.dims[static_cast<size_t>(axis)] = 1;
  else
    t.dims.erase(t.dims.begin() + axis);
  c.result(0, t);
}

void rule_top_k(InferContext& c) {
  Type t = c.type(0);
  const auto& a = c.attrs<TopKAttrs>();
  Dim& d = t.dims[static_cast<size_t>(c.axis(a.axis, t.rank()))];
  c.require(a.k >= 0 && (!d.is_number() || a.k <= d.number()), "k is larger than the axis");
  d = a.k;
  c.result(0, t);
  t.dtype = DType::i64;
  c.result(1, t);
}

}  // namespace cyb::ir
