// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/ops_util.h"

#include <algorithm>
#include <limits>

namespace cyb::onnx {

using namespace ir;

int axis_from(const NodeContext& c, int64_t axis, int rank) {
  const int64_t a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) c.invalid(fmt::format("axis {} of an operand of rank {}", axis, rank));
  return static_cast<int>(a);
}

std::vector<int64_t> axes_from(int first, int end) {
  std::vector<int64_t> out;
  for (int i = first; i < end; i++) out.push_back(i);
  return out;
}

AutoPad auto_pad_of(const NodeContext& c) {
  const std::string name = c.attr_string("auto_pad", "NOTSET");
  if (name == "NOTSET" || name.empty()) return AutoPad::none;
  if (name == "SAME_UPPER") return AutoPad::same_upper;
  if (name == "SAME_LOWER") return AutoPad::same_lower;
  if (name == "VALID") return AutoPad::valid;
  c.invalid(fmt::format("auto_pad '{}'", name));
}

std::vector<ValueId> trimmed(std::vector<ValueId> operands) {
  while (!operands.empty() && operands.back() == kNone) operands.pop_back();
  return operands;
}

ValueId reduce(NodeContext& c, Op op, ValueId x, std::vector<int64_t> axes, bool keep) {
  return c.op(op, {x}, ReduceAttrs{.axes = std::move(axes), .keep = keep});
}

ValueId counting(NodeContext& c, ValueId n) { return c.op(Op::Range, {c.i64(0), scalar_of(c, n), c.i64(1)}); }

ValueId strided(NodeContext& c, ValueId x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  return c.op(Op::Slice, {x, c.i64s({start}), c.i64s({end}), c.i64s({axis}), c.i64s({step})});
}

ValueId reversed(NodeContext& c, ValueId x, int64_t axis) {
  return strided(c, x, axis, -1, std::numeric_limits<int64_t>::min(), -1);
}

ValueId flattened(NodeContext& c, ValueId x, int first) {
  if (first == c.type_of(x).rank() - 1) return x;
  std::vector<int64_t> shape(static_cast<size_t>(first), 0);
  shape.push_back(-1);
  return c.reshape(x, shape);
}

ValueId unflattened(NodeContext& c, ValueId x, ValueId like, int first) {
  const Type t = c.type_of(like);
  if (first == t.rank() - 1) return x;
  std::vector<int64_t> shape(static_cast<size_t>(first), 0);
  int open = 0;
  for (int i = first; i < t.rank(); i++) {
    const Dim d = t.dims[static_cast<size_t>(i)];
    open += !d.is_number() || d == Dim(0);
    shape.push_back(d.is_number() ? d.number() : -1);
  }
  // One open axis follows from the others; 0 would keep an axis.
  if (open == 0 || (open == 1 && std::count(shape.begin() + first, shape.end(), 0) == 0))
    return c.reshape(x, shape);
  return shaped_as(c, x, like);
}

ValueId shaped_as(NodeContext& c, ValueId x, ValueId other) {
  const Type& t = c.type_of(other);
  if (t.is_concrete()) {
    std::vector<int64_t> dims;
    bool empty = false;
    for (Dim d : t.dims) {
      dims.push_back(d.number());
      empty |= d.number() == 0;
    }
    if (!empty) return c.reshape(x, std::move(dims));
  }
  return c.op(Op::Reshape, {x, c.shape_of(other)}, ReshapeAttrs{.shape = {}, .allow_zero = true});
}

ValueId expand(NodeContext& c, ValueId x, ValueId shape) { return c.op(Op::Expand, {x, shape}); }

ValueId where(NodeContext& c, ValueId condition, ValueId a, ValueId b) {
  return c.op(Op::Where, {condition, a, b});
}

ValueId plus(NodeContext& c, ValueId x, double a) { return c.add(x, c.like(x, a)); }
ValueId times(NodeContext& c, ValueId x, double a) { return c.mul(x, c.like(x, a)); }

bool narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace cyb::onnx
