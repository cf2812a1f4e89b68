// SPDX-License-Identifier: Apache-2.0
// Gather, scatter, and what is made of them.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

template <Op op>
void convert_gather(NodeContext& c) {
  keep(c, c.op(op, {c.in(0), c.in(1)}, ir::AxisAttrs{.axis = c.attr_int("axis", 0)}));
}

void convert_gather_nd(NodeContext& c) {
  keep(c,
       c.op(Op::GatherNd, {c.in(0), c.in(1)}, ir::GatherNdAttrs{.batch_dims = c.attr_int("batch_dims", 0)}));
}

template <Op op>
void convert_scatter(NodeContext& c) {
  const std::string name = c.attr_string("reduction", "none");
  ir::ScatterAttrs a{.axis = op == Op::ScatterElements ? c.attr_int("axis", 0) : 0};
  if (name == "add")
    a.reduction = ir::ScatterReduction::add;
  else if (name == "mul")
    a.reduction = ir::ScatterReduction::mul;
  else if (name == "max")
    a.reduction = ir::ScatterReduction::max;
  else if (name == "min")
    a.reduction = ir::ScatterReduction::min;
  else if (name != "none")
    c.invalid(fmt::format("reduction is '{}'", name));
  keep(c, c.op(op, {c.in(0), c.in(1), c.in(2)}, a));
}

// Rows of a cache are replaced from the index that each sample gives.
void convert_tensor_scatter(NodeContext& c) {
  const ValueId cache = c.in(0), update = c.in(1);
  const int rank = c.rank(0);
  const int64_t axis = axis_of(c, c.attr_int("axis", -2), rank);
  if (axis == 0) c.invalid("the axis must not be the batch");
  const std::string mode = c.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular") c.invalid(fmt::format("mode is '{}'", mode));
  ValueId at = iota_along(c, update, axis);
  if (c.has(2)) {
    std::vector<int64_t> samples(static_cast<size_t>(rank), 1);
    samples[0] = -1;
    at = c.add(at, c.reshape(c.cast(c.in(2), DType::i64), samples));
  }
  if (mode == "circular") at = c.op(Op::Mod, {at, as_scalar(c, c.dim_of(cache, axis))});
  at = c.op(Op::Expand, {at, c.shape_of(update)});
  keep(c, c.op(Op::ScatterElements, {cache, at, update}, ir::ScatterAttrs{.axis = axis}));
}

void convert_one_hot(NodeContext& c) {
  const int64_t axis = axis_of(c, c.attr_int("axis", -1), c.rank(0) + 1);
  const int64_t inner = c.rank(0) - axis;  // axes of the indices behind the new one
  const ValueId depth = c.cast(as_scalar(c, c.in(1)), DType::i64);
  ValueId index = c.cast(c.in(0), DType::i64);
  const ValueId negative = c.op(Op::Less, {index, c.i64(0)});
  index = c.op(Op::Where, {negative, c.add(index, depth), index});
  std::vector<int64_t> shape(static_cast<size_t>(inner + 1), 1);
  shape[0] = -1;
  const ValueId hot = c.op(Op::Equal, {c.unsqueeze(index, {axis}), c.reshape(iota(c, depth), shape)});
  auto value = [&](int64_t i) { return c.op(Op::Gather, {c.in(2), c.i64(i)}, ir::AxisAttrs{.axis = 0}); };
  keep(c, c.op(Op::Where, {hot, value(1), value(0)}), 2);
}

void convert_non_zero(NodeContext& c) { c.out(0, c.op(Op::NonZero, {c.in(0)})); }

void convert_unique(NodeContext& c) {
  const ir::UniqueAttrs a{
      .flat = !c.has_attr("axis"), .axis = c.attr_int("axis", 0), .sorted = c.attr_int("sorted", 1) != 0};
  const auto y = c.ops(Op::Unique, {c.in(0)}, a, 4);
  c.out(0, y[0], c.elem(0));
  for (int i = 1; i < 4; i++)
    if (c.has_output(i)) c.out(i, y[static_cast<size_t>(i)]);
}

void convert_compress(NodeContext& c) {
  const ValueId chosen = c.squeeze(c.op(Op::NonZero, {c.in(1)}), {0});
  const bool flat = !c.has_attr("axis");
  const ValueId x = flat ? c.reshape(c.in(0), {-1}) : c.in(0);
  keep(c, c.op(Op::Gather, {x, chosen}, ir::AxisAttrs{.axis = flat ? 0 : c.attr_int("axis", 0)}));
}

// The first `length` steps of each sequence backwards, the rest as they are.
void convert_reverse_sequence(NodeContext& c) {
  const int rank = c.rank(0);
  const int64_t batch = axis_of(c, c.attr_int("batch_axis", 1), rank);
  const int64_t time = axis_of(c, c.attr_int("time_axis", 0), rank);
  if (batch == time) c.invalid("batch_axis and time_axis are the same");
  std::vector<int64_t> front = {batch, time}, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; i++)
    if (i != batch && i != time) front.push_back(i);
  for (size_t i = 0; i < front.size(); i++) back[static_cast<size_t>(front[i])] = static_cast<int64_t>(i);
  const ValueId x = c.permute(c.in(0), front);
  const ValueId step = iota(c, as_scalar(c, c.dim_of(x, 1)));
  const ValueId length = c.unsqueeze(c.cast(c.in(1), DType::i64), {1});
  const ValueId mirrored = c.sub(c.sub(length, c.i64(1)), step);
  const ValueId at = c.op(Op::Where, {c.op(Op::Less, {step, length}), mirrored, step});
  const ValueId y = c.op(Op::GatherNd, {x, c.unsqueeze(at, {2})}, ir::GatherNdAttrs{.batch_dims = 1});
  keep(c, c.permute(y, back));
}

}  // namespace

void add_index_converters(Registry& r) {
  r.add("Gather", convert_gather<Op::Gather>);
  r.add("GatherElements", convert_gather<Op::GatherElements>);
  r.add("GatherND", convert_gather_nd);
  r.add("Scatter", convert_scatter<Op::ScatterElements>);
  r.add("ScatterElements", convert_scatter<Op::ScatterElements>);
  r.add("ScatterND", convert_scatter<Op::ScatterNd>);
  r.add("TensorScatter", convert_tensor_scatter);
  r.add("OneHot", convert_one_hot);
  r.add("NonZero", convert_non_zero);
  r.add("Unique", convert_unique);
  r.add("Compress", convert_compress);
  r.add("ReverseSequence", convert_reverse_sequence);
}

}  // namespace cyb::onnx
