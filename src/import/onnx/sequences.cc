// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/sequences.h"

#include <limits>

#include "import/onnx/ops_util.h"

namespace cyb::onnx {

using namespace ir;

namespace {

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

// i64[1, 9] of one tensor.
ValueId shape_row(NodeContext& c, ValueId x) {
  const ValueId shape = c.shape_of(x);
  const ValueId rank = c.dim_of(shape, 0);
  const ValueId missing = c.sub(c.i64s({kMaxRank}), rank);
  const ValueId padded =
      c.op(Op::Pad, {c.concat({rank, shape}, 0), c.concat({c.i64s({0}), missing}, 0), c.i64(1)}, PadAttrs{});
  return c.reshape(padded, {1, kMaxRank + 1});
}

}  // namespace

ValueForm form_of(const Binding& b) { return {b.elem, b.sequence, b.present != kNone}; }

std::vector<ValueId> parts_of(NodeContext& c, const Binding& b) {
  const ValueId present = b.present;
  std::vector<ValueId> out;
  if (b.sequence) {
    const Rows rows = rows_of(c, b);
    out = {rows.data, rows.shapes};
  } else {
    out = {b.id};
  }
  if (present != kNone) out.push_back(present);
  return out;
}

Binding binding_of(const ValueForm& form, const std::vector<ValueId>& parts) {
  Binding b;
  b.elem = form.elem;
  b.id = parts[0];
  b.sequence = form.sequence;
  if (form.sequence) b.shapes = parts[1];
  if (form.optional) b.present = parts.back();
  return b;
}

std::vector<std::string> part_names(const std::string& name, const ValueForm& form) {
  std::vector<std::string> out = {form.sequence ? name + ".data" : name};
  if (form.sequence) out.push_back(name + ".shapes");
  if (form.optional) out.push_back(name + ".present");
  return out;
}

Rows rows_of(NodeContext& c, const std::vector<ValueId>& elements, DType dtype) {
  if (elements.empty())
    return {c.constant(Tensor(dtype, {0})), c.constant(Tensor(DType::i64, {0, kMaxRank + 1}))};
  std::vector<ValueId> data, shapes;
  for (const ValueId x : elements) {
    data.push_back(c.reshape(x, {-1}));
    shapes.push_back(shape_row(c, x));
  }
  return {c.concat(data, 0), c.concat(shapes, 0)};
}

Rows rows_of(NodeContext& c, const Binding& sequence) {
  if (!sequence.listed) return {sequence.id, sequence.shapes};
  const std::vector<ValueId> elements = sequence.elements;
  return rows_of(c, elements, held_as(sequence.elem));
}

ValueId element_of(NodeContext& c, const Rows& rows, ValueId index) {
  const ValueId next = c.add(index, c.i64s({1}));
  const auto part = [&](ValueId x, ValueId from, ValueId to) {
    return c.op(Op::Slice, {x, from, to, c.i64s({0})});
  };
  const ValueId sizes = reduce(c, Op::ReduceProd, c.slice(rows.shapes, 1, 1, kEnd), {1}, false);
  const ValueId begin = reduce(c, Op::ReduceSum, part(sizes, c.i64s({0}), index), {0});
  const ValueId size = part(sizes, index, next);
  const ValueId row = c.reshape(part(rows.shapes, index, next), {-1});
  const ValueId shape = part(row, c.i64s({1}), c.add(c.slice(row, 0, 0, 1), c.i64s({1})));
  return c.op(Op::Reshape, {part(rows.data, begin, c.add(begin, size)), shape},
              ReshapeAttrs{.shape = {}, .allow_zero = true});
}

}  // namespace cyb::onnx
