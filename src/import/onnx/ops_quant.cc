// SPDX-License-Identifier: Apache-2.0
// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

// How scales lie over the operand: one, one an index of an axis, or one a block along it.
struct Layout {
  int64_t axis = 0, block = 0;
  bool spread = false;  // more than one scale
};

Layout layout_of(NodeContext& c) {
  Layout l;
  const Type& scale = c.in_type(1);
  if (!scale.known_rank) c.unsupported("a scale whose rank only a run can tell");
  if (scale.rank() == 0 || (scale.rank() == 1 && scale.dims[0] == Dim(1))) return l;
  const int rank = c.rank(0);
  l.spread = true;
  // ONNX ignores the axis of a vector.
  l.axis = rank == 1 ? 0 : axis_of(c, c.attr_int("axis", 1), rank);
  l.block = c.attr_int("block_size", 0);
  if (l.block < 0) c.invalid("block_size is negative");
  if (l.block == 0 && scale.rank() != 1) c.invalid("a scale of more than one axis needs block_size");
  return l;
}

// Scales (or zero points) under a shape that broadcasts with the operand x.
ValueId spread(NodeContext& c, ValueId v, ValueId x, const Layout& l) {
  if (!l.spread) return as_scalar(c, v);
  const auto rank = static_cast<int64_t>(c.type_of(x).rank());
  if (l.block == 0) {
    std::vector<int64_t> shape(static_cast<size_t>(rank - l.axis), 1);
    shape[0] = -1;
    return c.reshape(v, shape);
  }
  // Each is repeated; the last block may be short.
  const ValueId count = as_scalar(c, c.dim_of(x, l.axis));
  const ValueId block = c.op(Op::Div, {iota(c, count), c.i64(l.block)});
  return c.op(Op::Gather, {v, block}, ir::AxisAttrs{.axis = l.axis});
}

ir::QuantizeAttrs attrs_of(const Layout& l, DType to, int64_t bits) {
  return {.axis = l.axis, .block = l.block, .to = to, .bits = bits};
}

void convert_quantize(NodeContext& c) {
  Elem to = elem_attr(c, "output_dtype", Elem::undefined);
  if (c.has(2)) to = c.elem(2);
  if (to == Elem::undefined) to = Elem::u8;
  const Layout l = layout_of(c);
  const Elem precision = elem_attr(c, "precision", Elem::undefined);
  ValueId x = c.in(0), scale = c.in(1);
  if (is_small_float(c.elem(1))) scale = cast_elem(c, scale, c.elem(1), Elem::f32);
  if (precision == Elem::f16 || precision == Elem::bf16) {  // divides with so few digits
    x = c.cast(x, held_as(precision));
    scale = c.cast(scale, held_as(precision));
    x = c.div(x, spread(c, scale, x, l));
    scale = c.scalar(DType::f32, 1);
  }
  x = c.cast(x, DType::f32);
  scale = c.cast(scale, DType::f32);
  if (is_small_float(to)) {
    ValueId y = c.div(x, c.type_of(scale).rank() == 0 ? scale : spread(c, scale, x, l));
    if (to == Elem::f4e2m1 && c.has(2)) y = c.add(y, spread(c, cast_elem(c, c.in(2), to, Elem::f32), x, l));
    return c.out(0, cast_elem(c, y, Elem::f32, to, {.saturate = c.attr_int("saturate", 1) != 0}), to);
  }
  std::vector<ValueId> operands = {x, l.spread ? scale : as_scalar(c, scale)};
  if (c.has(2)) operands.push_back(l.spread ? c.in(2) : as_scalar(c, c.in(2)));
  c.out(0, c.op(Op::Quantize, operands, attrs_of(l, held_as(to), bits_of(to))), to);
}

void convert_dequantize(NodeContext& c) {
  const Elem to = elem_attr(c, "output_dtype", is_small_float(c.elem(1)) ? Elem::f32 : c.elem(1));
  const Layout l = layout_of(c);
  const ValueId x = c.in(0), scale = cast_elem(c, c.in(1), c.elem(1), Elem::f32);
  ValueId y = kNone;
  if (is_small_float(c.elem(0))) {
    y = cast_elem(c, x, c.elem(0), Elem::f32);
    if (c.has(2)) y = c.sub(y, spread(c, cast_elem(c, c.in(2), c.elem(2), Elem::f32), y, l));
    y = c.mul(y, spread(c, scale, y, l));
  } else {
    std::vector<ValueId> operands = {x, l.spread ? scale : as_scalar(c, scale)};
    if (c.has(2)) operands.push_back(l.spread ? c.in(2) : as_scalar(c, c.in(2)));
    y = c.op(Op::Dequantize, operands, attrs_of(l, DType::f32, 0));
  }
  c.out(0, cast_elem(c, y, Elem::f32, to), to);
}

void convert_dynamic_quantize(NodeContext& c) {
  const auto y = c.ops(Op::DynamicQuantize, {c.in(0)}, ir::NoAttrs{}, 3);
  for (int i = 0; i < 3; i++)
    if (c.has_output(i)) c.out(i, y[static_cast<size_t>(i)]);
}

}  // namespace

void add_quant_converters(Registry& r) {
  r.add("QuantizeLinear", convert_quantize);
  r.add("DequantizeLinear", convert_dequantize);
  r.add("DynamicQuantizeLinear", convert_dynamic_quantize);
  add_product_quant_converters(r);
}

}  // namespace cyb::onnx
