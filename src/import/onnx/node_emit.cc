// SPDX-License-Identifier: Apache-2.0
// What converters emit: nodes, constants, and the rearrangements that many of them need.
#include <algorithm>

#include "base/error.h"
#include "import/onnx/graph_converter.h"

namespace cyb::onnx {

std::vector<ValueId> NodeContext::emit(Op op, std::vector<ValueId> operands, std::unique_ptr<ir::Attrs> attrs,
                                       int results) {
  // Optional operands at the end are left out.
  const ir::OpInfo& row = ir::info(op);
  while (!operands.empty() && operands.back() == kNone &&
         static_cast<int>(operands.size()) > row.min_operands)
    operands.pop_back();
  ir::Node node;
  node.op = op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  return graph_.add_node(std::move(node), results);
}

std::vector<ValueId> NodeContext::control(Op op, std::vector<ValueId> operands,
                                          std::unique_ptr<ir::Attrs> attrs,
                                          std::vector<std::unique_ptr<ir::Graph>> regions, int results) {
  ir::Node node;
  node.op = op;
  node.operands = std::move(operands);
  node.attrs = std::move(attrs);
  node.regions = std::move(regions);
  return graph_.add_node(std::move(node), results);
}

ValueId NodeContext::constant(Tensor value) { return graph_.add_constant(std::move(value), ""); }

ValueId NodeContext::scalar(DType type, double value) {
  Tensor t(type, {});
  t.set_real(0, value);
  return constant(std::move(t));
}

ValueId NodeContext::like(ValueId other, double value) { return scalar(type_of(other).dtype, value); }

ValueId NodeContext::i64s(std::vector<int64_t> values) {
  return constant(Tensor::i64({static_cast<int64_t>(values.size())}, values));
}

ValueId NodeContext::i64(int64_t value) { return constant(Tensor::i64({}, {value})); }

ValueId NodeContext::cast(ValueId x, DType to) {
  return type_of(x).dtype == to ? x : op(Op::Cast, {x}, ir::CastAttrs{to});
}

ValueId NodeContext::reshape(ValueId x, std::vector<int64_t> shape) {
  const Type& t = type_of(x);
  bool same = t.known_rank && t.dims.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); i++) same = shape[i] == 0 || t.dims[i] == Dim(shape[i]);
  if (same || (t.known_rank && t.rank() == 1 && shape == std::vector<int64_t>{-1})) return x;
  if (shape.empty()) {  // a list without entries would ask the second operand
    return op(Op::Reshape, {x, i64s({})});
  }
  return op(Op::Reshape, {x}, ir::ReshapeAttrs{.shape = std::move(shape)});
}

ValueId NodeContext::permute(ValueId x, std::vector<int64_t> axes) {
  bool same = !type_of(x).known_rank || type_of(x).dims.size() == axes.size();
  for (size_t i = 0; i < axes.size(); i++) same = same && axes[i] == static_cast<int64_t>(i);
  return same ? x : op(Op::Permute, {x}, ir::AxesAttrs{std::move(axes)});
}

ValueId NodeContext::unsqueeze(ValueId x, std::vector<int64_t> axes) {
  return axes.empty() ? x : op(Op::Unsqueeze, {x}, ir::AxesAttrs{std::move(axes)});
}

ValueId NodeContext::squeeze(ValueId x, std::vector<int64_t> axes) {
  return axes.empty() ? x : op(Op::Squeeze, {x}, ir::AxesAttrs{std::move(axes)});
}

ValueId NodeContext::slice(ValueId x, int64_t axis, int64_t start, int64_t end) {
  const Type& t = type_of(x);
  const int64_t a = axis < 0 ? axis + t.rank() : axis;
  if (t.known_rank && a >= 0 && a < t.rank() && start == 0) {
    const Dim d = t.dims[static_cast<size_t>(a)];
    if (end == INT64_MAX || (d.is_number() && end >= d.number())) return x;
  }
  return op(Op::Slice, {x, i64s({start}), i64s({end}), i64s({axis})});
}

ValueId NodeContext::concat(std::vector<ValueId> xs, int64_t axis) {
  if (xs.size() == 1) {
    const Type& t = type_of(xs[0]);
    if (t.known_rank && (axis < -t.rank() || axis >= t.rank()))
      invalid(fmt::format("axis {} of rank {}", axis, t.rank()));
    return xs[0];
  }
  // Programs bound the operands of a node: many parts are joined in groups.
  constexpr size_t kMost = 128;
  while (xs.size() > kMost) {
    std::vector<ValueId> joined;
    for (size_t i = 0; i < xs.size(); i += kMost)
      joined.push_back(op(Op::Concat,
                          {xs.begin() + static_cast<ptrdiff_t>(i),
                           xs.begin() + static_cast<ptrdiff_t>(std::min(i + kMost, xs.size()))},
                          ir::AxisAttrs{axis}));
    xs = std::move(joined);
  }
  return op(Op::Concat, std::move(xs), ir::AxisAttrs{axis});
}

ValueId NodeContext::shape_of(ValueId x) { return op(Op::ShapeOf, {x}); }

ValueId NodeContext::dim_of(ValueId x, int64_t axis) {
  const Type& t = type_of(x);
  const int64_t a = axis < 0 && t.known_rank ? axis + t.rank() : axis;
  if (t.known_rank && a >= 0 && a < t.rank() && t.dims[static_cast<size_t>(a)].is_number())
    return i64s({t.dims[static_cast<size_t>(a)].number()});
  return op(Op::Gather, {shape_of(x), i64s({axis})}, ir::AxisAttrs{0});
}

ValueId NodeContext::matmul(ValueId a, ValueId b) {
  auto rank_of = [&](ValueId id) { return type_of(id).known_rank ? type_of(id).rank() : 2; };
  if (rank_of(a) == 0 || rank_of(b) == 0) invalid("a product of scalars");
  const bool row = rank_of(a) == 1, column = rank_of(b) == 1;
  if (row) a = unsqueeze(a, {0});
  ValueId y = kNone;
  const int n = rank_of(b);
  if (column) {
    y = op(Op::Matmul, {a, unsqueeze(b, {0})}, ir::MatmulAttrs{ir::MatmulForm::nt});
  } else if (constant(b) && !constant(a)) {
    std::vector<int64_t> axes;
    for (int i = 0; i < n; i++) axes.push_back(i);
    std::swap(axes[static_cast<size_t>(n) - 1], axes[static_cast<size_t>(n) - 2]);
    const ValueId w = permute(b, axes);
    // Where the budget for constants is used up, it is a node's result.
    y = constant(w) ? op(Op::Matmul, {a, w}, ir::MatmulAttrs{ir::MatmulForm::nt})
                    : op(Op::Matmul, {a, b}, ir::MatmulAttrs{ir::MatmulForm::nn});
  } else {
    y = op(Op::Matmul, {a, b}, ir::MatmulAttrs{ir::MatmulForm::nn});
  }
  if (column) y = squeeze(y, {-1});
  if (row) y = squeeze(y, {column ? -1 : -2});
  return y;
}

}  // namespace cyb::onnx
