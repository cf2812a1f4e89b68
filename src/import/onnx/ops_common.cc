// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/ops.h"

namespace cyb::onnx {

ValueId as_scalar(NodeContext& c, ValueId x) {
  const Type& t = c.type_of(x);
  if (t.known_rank && t.rank() == 0) return x;
  return c.op(Op::Reshape, {x}, ir::ReshapeAttrs{});
}

ValueId second_in(NodeContext& c) {
  const ValueId b = c.in(1);
  if (c.opset() >= 7 || !c.has_attr("axis")) return b;
  const int ranks[] = {c.rank(0), c.rank(1)};
  const int64_t given = c.attr_int("axis", -1);
  const int64_t axis = given < 0 ? given + ranks[0] : given;
  if (axis < 0 || axis + ranks[1] > ranks[0]) c.invalid(fmt::format("axis {} of rank {}", given, ranks[0]));
  std::vector<int64_t> trailing;
  for (int64_t i = ranks[1]; i < ranks[0] - axis; i++) trailing.push_back(i);
  return trailing.empty() ? b : c.unsqueeze(b, trailing);
}

ValueId iota(NodeContext& c, ValueId n) { return c.op(Op::Range, {c.i64(0), n, c.i64(1)}); }

ValueId iota_along(NodeContext& c, ValueId x, int64_t axis) {
  const int rank = c.type_of(x).rank();
  const ValueId index = iota(c, as_scalar(c, c.dim_of(x, axis)));
  std::vector<int64_t> shape(static_cast<size_t>(rank - axis), 1);
  shape[0] = -1;
  return c.reshape(index, shape);
}

ValueId reshape_to(NodeContext& c, ValueId x, ValueId shape) {
  if (const Tensor* t = c.constant(shape)) {
    ir::ReshapeAttrs a;
    for (int64_t i = 0; i < t->elements(); i++) a.shape.push_back(t->integer(static_cast<size_t>(i)));
    return c.op(Op::Reshape, {x}, a);
  }
  return c.op(Op::Reshape, {x, shape}, ir::ReshapeAttrs{});
}

int64_t axis_of(NodeContext& c, int64_t axis, int rank) {
  const int64_t a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) c.invalid(fmt::format("axis {} of rank {}", axis, rank));
  return a;
}

bool is_scalar_of(NodeContext& c, ValueId x, double value) {
  const Tensor* t = c.constant(x);
  return t && t->type() != DType::string && t->elements() == 1 && t->real(0) == value;
}

}  // namespace cyb::onnx
