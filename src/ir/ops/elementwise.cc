// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/common.h"
#include "ir/ops/rules.h"

namespace cyb::ir {

void rule_unary(InferContext& c) { c.result(0, c.type(0)); }

namespace {

DType same_type(const InferContext& c, int a, int b) {
  c.require(c.type(a).dtype == c.type(b).dtype, "element types differ");
  return c.type(a).dtype;
}

}  // namespace

void rule_test(InferContext& c) { c.result(0, {DType::boolean, c.type(0).dims}); }

void rule_binary(InferContext& c) {
  const DType type = same_type(c, 0, 1);
  c.result(0, {type, c.broadcast(c.type(0).dims, c.type(1).dims)});
}

void rule_bits(InferContext& c) {
  for (int i = 0; i < c.operands(); i++) c.require(is_integer(c.type(i).dtype), "operands must be integers");
  c.operands() == 1 ? rule_unary(c) : rule_binary(c);
}

void rule_pow(InferContext& c) {
  c.result(0, {c.type(0).dtype, c.broadcast(c.type(0).dims, c.type(1).dims)});
}

void rule_prelu(InferContext& c) {
  same_type(c, 0, 1);
  const Type& x = c.type(0);
  const Dims wide = c.broadcast(x.dims, c.type(1).dims);
  c.require(wide.size() == x.dims.size(), "the slope must broadcast to x");
  for (size_t i = 0; i < wide.size(); i++)
    c.require(!wide[i].is_number() || !x.dims[i].is_number() || wide[i] == x.dims[i],
              "the slope must broadcast to x");
  c.result(0, x);
}

void rule_glu(InferContext& c) {
  Type t = c.type(0);
  c.require(is_float(t.dtype), "the operand must be a float");
  Dim& d = t.dims[static_cast<size_t>(c.axis(c.attrs<AxisAttrs>().axis, t.rank()))];
  c.require(!d.is_number() || d.number() % 2 == 0, "the axis has no two halves");
  d = d.is_number() ? Dim(d.number() / 2) : Dim();
  c.result(0, t);
}

void rule_same_pair(InferContext& c) {
  same_type(c, 0, 1);
  c.require(c.type(0).rank() == c.type(1).rank(), "ranks differ");
  Type t = c.type(0);
  for (int i = 0; i < t.rank(); i++)
    t.dims[static_cast<size_t>(i)] =
        c.same(t.dims[static_cast<size_t>(i)], c.type(1).dims[static_cast<size_t>(i)], "axes");
  c.result(0, t);
}

void rule_compare(InferContext& c) {
  same_type(c, 0, 1);
  c.result(0, {DType::boolean, c.broadcast(c.type(0).dims, c.type(1).dims)});
}

void rule_logic(InferContext& c) {
  c.require(same_type(c, 0, 1) == DType::boolean, "operands must be bool");
  c.result(0, {DType::boolean, c.broadcast(c.type(0).dims, c.type(1).dims)});
}

void rule_logic_not(InferContext& c) {
  c.require(c.type(0).dtype == DType::boolean, "the operand must be bool");
  c.result(0, c.type(0));
}

void rule_where(InferContext& c) {
  c.require(c.type(0).dtype == DType::boolean, "the condition must be bool");
  const DType type = same_type(c, 1, 2);
  c.result(0, {type, c.broadcast(c.broadcast(c.type(0).dims, c.type(1).dims), c.type(2).dims)});
}

void rule_cast(InferContext& c) {
  Type t = c.type(0);
  t.dtype = c.attrs<CastAttrs>().to;
  c.require(t.dtype != DType::string && c.type(0).dtype != DType::string, "strings cannot be cast");
  c.result(0, t);
}

void rule_bit_cast(InferContext& c) {
  Type t = c.type(0);
  const DType to = c.attrs<CastAttrs>().to;
  c.require(t.dtype != DType::string && to != DType::string && size_of(t.dtype) == size_of(to),
            "element types differ in size");
  c.require(to != DType::boolean || t.dtype == to, "bits are no bool");
  t.dtype = to;
  c.result(0, t);
}

}  // namespace cyb::ir
