// SPDX-License-Identifier: Apache-2.0
// Rearranging: reshape, transpose, concatenate, cut, pad, repeat.
#include <algorithm>

#include "import/onnx/ops.h"

namespace cyb::onnx {

ValueId flatten(NodeContext& c, ValueId x, int64_t axis) {
  const Type& t = c.type_of(x);
  const int rank = t.rank();
  if (axis == 0) return c.reshape(x, {1, -1});
  if (axis == rank) return c.reshape(x, {-1, 1});
  if (axis == 1) return c.reshape(x, {0, -1});
  auto product = [&](int64_t from, int64_t to) {
    Dim n = 1;
    for (int64_t i = from; i < to; i++) n = n * t.dims[static_cast<size_t>(i)];
    return n;
  };
  const Dim rows = product(0, axis), columns = product(axis, rank);
  if (columns.is_number() && columns.number() > 0) return c.reshape(x, {-1, columns.number()});
  if (rows.is_number() && rows.number() > 0) return c.reshape(x, {rows.number(), -1});
  const ValueId shape = c.shape_of(x);
  auto count = [&](int64_t from, int64_t to) {
    return c.op(Op::ReduceProd, {c.slice(shape, 0, from, to)}, ir::ReduceAttrs{.axes = {}, .keep = true});
  };
  return c.op(Op::Reshape, {x, c.concat({count(0, axis), count(axis, rank)}, 0)},
              ir::ReshapeAttrs{.shape = {}, .allow_zero = true});
}

namespace {

void convert_reshape(NodeContext& c) {
  ir::ReshapeAttrs a{.shape = {}, .allow_zero = c.attr_int("allowzero", 0) != 0};
  if (auto known = c.ints_in(1)) {
    a.shape = *known;
    return keep(c, c.op(Op::Reshape, {c.in(0)}, a));
  }
  keep(c, c.op(Op::Reshape, {c.in(0), c.in(1)}, a));
}

void convert_flatten(NodeContext& c) {
  const int64_t axis = c.attr_int("axis", 1), rank = c.rank(0);
  keep(c, flatten(c, c.in(0),
                  axis == rank ? rank
                  : axis == 0  ? 0
                               : axis_of(c, axis, static_cast<int>(rank))));
}

void convert_transpose(NodeContext& c) {
  std::vector<int64_t> axes = c.attr_ints("perm");
  if (axes.empty())
    for (int i = c.rank(0) - 1; i >= 0; i--) axes.push_back(i);
  keep(c, c.permute(c.in(0), axes));
}

void convert_concat(NodeContext& c) {
  std::vector<ValueId> xs;
  for (int i = 0; i < c.inputs(); i++) xs.push_back(c.in(i));
  if (!c.has_attr("axis")) c.invalid("'axis' is missing");
  keep(c, c.concat(xs, c.attr_int("axis", 0)));
}

void convert_split(NodeContext& c) {
  ir::SplitAttrs a{.axis = c.attr_int("axis", 0), .sizes = {}};
  std::vector<ValueId> operands = {c.in(0)};
  if (c.opset() < 13)
    a.sizes = c.attr_ints("split");
  else if (auto known = c.ints_in(1))
    a.sizes = *known;
  else if (c.has(1))
    operands.push_back(c.in(1));
  if (!a.sizes.empty() && static_cast<int>(a.sizes.size()) != c.outputs())
    c.invalid(fmt::format("{} sizes for {} results", a.sizes.size(), c.outputs()));
  const auto parts = c.ops(Op::Split, operands, a, c.outputs());
  for (int i = 0; i < c.outputs(); i++)
    if (c.has_output(i)) c.out(i, parts[static_cast<size_t>(i)], c.elem(0));
}

void convert_slice(NodeContext& c) {
  if (c.opset() < 10) {
    const auto starts = c.attr_ints("starts"), ends = c.attr_ints("ends");
    std::vector<ValueId> operands = {c.in(0), c.i64s(starts), c.i64s(ends)};
    if (c.has_attr("axes")) operands.push_back(c.i64s(c.attr_ints("axes")));
    return keep(c, c.op(Op::Slice, operands));
  }
  std::vector<ValueId> operands;
  for (int i = 0; i < c.inputs(); i++) operands.push_back(c.in_or_none(i));
  while (operands.back() == kNone) operands.pop_back();
  keep(c, c.op(Op::Slice, operands));
}

void convert_pad(NodeContext& c) {
  const std::string mode = c.attr_string("mode", "constant");
  ir::PadAttrs a;
  if (mode == "reflect")
    a.mode = ir::PadMode::reflect;
  else if (mode == "edge")
    a.mode = ir::PadMode::edge;
  else if (mode == "wrap")
    a.mode = ir::PadMode::wrap;
  else if (mode != "constant")
    c.invalid(fmt::format("mode is '{}'", mode));
  if (c.opset() < 11) {
    std::vector<ValueId> operands = {c.in(0), c.i64s(c.attr_ints("pads"))};
    const double value = c.attr_float("value", 0);
    if (value != 0) operands.push_back(c.like(c.in(0), value));
    return keep(c, c.op(Op::Pad, operands, a));
  }
  std::vector<ValueId> operands = {c.in(0), c.in(1)};
  operands.push_back(c.has(2) ? as_scalar(c, c.in(2)) : kNone);
  operands.push_back(c.in_or_none(3));
  while (operands.back() == kNone) operands.pop_back();
  keep(c, c.op(Op::Pad, operands, a));
}

void convert_tile(NodeContext& c) { keep(c, c.op(Op::Tile, {c.in(0), c.in(1)})); }
void convert_expand(NodeContext& c) { keep(c, c.op(Op::Expand, {c.in(0), c.in(1)})); }
template <Op op>
void convert_axes(NodeContext& c) {
  ir::AxesAttrs a;
  std::vector<ValueId> operands = {c.in(0)};
  if (c.opset() < 13)
    a.axes = c.attr_ints("axes");
  else if (auto known = c.ints_in(1))
    a.axes = *known;
  else if (c.has(1))
    operands.push_back(c.cast(c.in(1), DType::i64));
  // An empty list leaves everything as it is; without one, Squeeze takes all axes of 1.
  const bool nothing = a.axes.empty() && operands.size() == 1 && (op == Op::Unsqueeze || c.has(1));
  keep(c, nothing ? c.in(0) : c.op(op, operands, a));
}

void convert_shape(NodeContext& c) {
  const ValueId shape = c.shape_of(c.in(0));
  if (!c.has_attr("start") && !c.has_attr("end")) return c.out(0, shape);
  const int64_t rank = c.rank(0);
  auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const int64_t start = bound(c.attr_int("start", 0)), end = bound(c.attr_int("end", rank));
  c.out(0, c.slice(shape, 0, start, std::max(start, end)));
}

void convert_size(NodeContext& c) {
  c.out(0, c.op(Op::ReduceProd, {c.shape_of(c.in(0))}, ir::ReduceAttrs{}));
}

// The axes of a picture [N, C, H, W], as numbers where they are known.
struct Picture {
  NodeContext& c;
  ValueId x;
  explicit Picture(NodeContext& context) : c(context), x(context.in(0)) {
    if (c.rank(0) != 4) c.invalid("the operand must be [N, C, H, W]");
  }
  ValueId dim(int64_t axis) { return c.dim_of(x, axis); }
  ValueId over(ValueId dim, int64_t by) { return c.div(dim, c.i64s({by})); }
  ValueId times(ValueId dim, int64_t by) { return c.mul(dim, c.i64s({by})); }
  ValueId shaped(ValueId v, std::vector<ValueId> dims) {
    return reshape_to(c, v, c.concat(std::move(dims), 0));
  }
};

int64_t block_size(NodeContext& c) {
  const int64_t b = c.attr_int("blocksize", 0);
  if (b < 1 || b > 65536) c.invalid(fmt::format("blocksize is {}", b));
  return b;
}

// "DCR": the channel is [block row, block column, channel]; "CRD": [channel, block row, block column].
bool block_first(NodeContext& c) {
  const std::string mode = c.attr_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") c.invalid(fmt::format("mode is '{}'", mode));
  return mode == "DCR";
}

void convert_depth_to_space(NodeContext& c) {
  Picture p(c);
  const int64_t b = block_size(c);
  const ValueId n = p.dim(0), deep = p.over(p.dim(1), b * b), h = p.dim(2), w = p.dim(3), block = c.i64s({b});
  const bool dcr = block_first(c);
  const ValueId y = dcr ? c.permute(p.shaped(p.x, {n, block, block, deep, h, w}), {0, 3, 4, 1, 5, 2})
                        : c.permute(p.shaped(p.x, {n, deep, block, block, h, w}), {0, 1, 4, 2, 5, 3});
  keep(c, p.shaped(y, {n, deep, p.times(h, b), p.times(w, b)}));
}

void convert_space_to_depth(NodeContext& c) {
  Picture p(c);
  const int64_t b = block_size(c);
  const ValueId n = p.dim(0), deep = p.dim(1), h = p.over(p.dim(2), b), w = p.over(p.dim(3), b),
                block = c.i64s({b});
  const ValueId cut = p.shaped(p.x, {n, deep, h, block, w, block});
  const bool dcr = block_first(c);
  const ValueId y =
      c.permute(cut, dcr ? std::vector<int64_t>{0, 3, 5, 1, 2, 4} : std::vector<int64_t>{0, 1, 3, 5, 2, 4});
  keep(c, p.shaped(y, {n, p.times(deep, b * b), h, w}));
}

void convert_trilu(NodeContext& c) {
  std::vector<ValueId> operands = {c.in(0)};
  if (c.has(1)) operands.push_back(as_scalar(c, c.in(1)));
  keep(c, c.op(Op::Trilu, operands, ir::TriluAttrs{.upper = c.attr_int("upper", 1) != 0}));
}

// Each axis is cut or padded about its middle.
void convert_center_crop_pad(NodeContext& c) {
  ValueId x = c.in(0);
  const int rank = c.rank(0);
  std::vector<int64_t> axes = c.attr_ints("axes");
  if (!c.has_attr("axes"))
    for (int i = 0; i < rank; i++) axes.push_back(i);
  for (int64_t& a : axes) a = axis_of(c, a, rank);
  if (axes.empty()) return keep(c, x);
  const ValueId target = c.cast(c.in(1), DType::i64), at = c.i64s(axes);
  const ValueId dims = c.op(Op::Gather, {c.shape_of(x), at}, ir::AxisAttrs{.axis = 0});
  const ValueId zero = c.i64(0), two = c.i64(2);
  const ValueId start = c.div(c.op(Op::Max, {c.sub(dims, target), zero}), two);
  x = c.op(Op::Slice, {x, start, c.add(start, c.op(Op::Min, {dims, target})), at});
  const ValueId missing = c.op(Op::Max, {c.sub(target, dims), zero});
  const ValueId before = c.div(missing, two);
  const ValueId pads = c.concat({before, c.sub(missing, before)}, 0);
  keep(c, c.op(Op::Pad, {x, pads, kNone, at}, ir::PadAttrs{}));
}

}  // namespace

void add_shape_converters(Registry& r) {
  r.add("Reshape", convert_reshape);
  r.add("Flatten", convert_flatten);
  r.add("Transpose", convert_transpose);
  r.add("Concat", convert_concat);
  r.add("Split", convert_split);
  r.add("Slice", convert_slice);
  r.add("Pad", convert_pad);
  r.add("Tile", convert_tile);
  r.add("Expand", convert_expand);
  r.add("Squeeze", convert_axes<Op::Squeeze>);
  r.add("Unsqueeze", convert_axes<Op::Unsqueeze>);
  r.add("Shape", convert_shape);
  r.add("Size", convert_size);
  r.add("DepthToSpace", convert_depth_to_space);
  r.add("SpaceToDepth", convert_space_to_depth);
  r.add("Trilu", convert_trilu);
  r.add("CenterCropPad", convert_center_crop_pad);
  add_index_converters(r);
}

}  // namespace cyb::onnx
