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

void rule_binary(InferContext& c) {
  const DType type = same_type(c, 0, 1);
  c.result(0, {type, c.broadcast(c.type(0).dims, c.type(1).dims)});
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

}  // namespace cyb::ir
