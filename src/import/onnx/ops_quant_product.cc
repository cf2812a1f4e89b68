// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of 8-bit integers, with and without requantization.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

std::vector<ValueId> trimmed(std::vector<ValueId> operands) {
  while (!operands.empty() && operands.back() == kNone) operands.pop_back();
  return operands;
}

void convert_matmul_integer(NodeContext& c) {
  c.out(0, c.op(Op::MatmulInteger, trimmed({c.in(0), c.in(1), c.in_or_none(2), c.in_or_none(3)})));
}

ir::ConvAttrs conv_attrs(NodeContext& c) {
  ir::ConvAttrs a{.strides = c.attr_ints("strides"),
                  .pads = c.attr_ints("pads"),
                  .dilations = c.attr_ints("dilations"),
                  .groups = c.attr_int("group", 1)};
  const std::string pad = c.attr_string("auto_pad", "NOTSET");
  if (pad == "SAME_UPPER")
    a.auto_pad = ir::AutoPad::same_upper;
  else if (pad == "SAME_LOWER")
    a.auto_pad = ir::AutoPad::same_lower;
  else if (pad == "VALID")
    a.auto_pad = ir::AutoPad::valid;
  else if (pad != "NOTSET")
    c.invalid(fmt::format("auto_pad is '{}'", pad));
  return a;
}

void convert_conv_integer(NodeContext& c) {
  c.out(0,
        c.op(Op::ConvInteger, trimmed({c.in(0), c.in(1), c.in_or_none(2), c.in_or_none(3)}), conv_attrs(c)));
}

// Scales of one axis of a product: a vector broadcasts along the rows' or the columns' axis.
ValueId along(NodeContext& c, ValueId v, bool rows) {
  const Type& t = c.type_of(v);
  if (!t.known_rank) c.unsupported("scales whose rank only a run can tell");
  if (t.rank() == 1 && t.dims[0] == Dim(1)) return as_scalar(c, v);
  return rows && t.rank() == 1 ? c.unsqueeze(v, {1}) : v;
}

// saturate(round(y · factor / scale) + zero) for the exact sums y.
void requantize(NodeContext& c, ValueId y, ValueId factor, ValueId scale, ValueId zero, int zero_operand) {
  const Elem to = c.elem(zero_operand);
  y = c.mul(c.cast(y, DType::f32), factor);
  const Type& s = c.type_of(scale);
  if (!s.known_rank || !(s.rank() == 0 || (s.rank() == 1 && s.dims[0] == Dim(1))))
    c.unsupported("a scale of the result for each row");
  scale = as_scalar(c, c.cast(scale, DType::f32));
  c.out(0,
        c.op(Op::Quantize, {y, scale, as_scalar(c, zero)}, ir::QuantizeAttrs{.axis = 0, .to = held_as(to)}),
        to);
}

void convert_qlinear_matmul(NodeContext& c) {
  for (int i : {0, 3, 7})
    if (is_small_float(c.elem(i))) c.unsupported("a product of small floats");
  const ValueId a_scale = along(c, c.cast(c.in(1), DType::f32), true);
  const ValueId b_scale = along(c, c.cast(c.in(4), DType::f32), false);
  const ValueId y = c.op(Op::MatmulInteger, {c.in(0), c.in(3), c.in(2), c.in(5)});
  requantize(c, y, c.mul(a_scale, b_scale), c.in(6), c.in(7), 7);
}

void convert_qlinear_conv(NodeContext& c) {
  ValueId y = c.op(Op::ConvInteger, {c.in(0), c.in(3), c.in(2), c.in(5)}, conv_attrs(c));
  // One value for each result channel, [M, 1, …].
  std::vector<int64_t> channels(static_cast<size_t>(c.rank(3) - 1), 1);
  channels[0] = -1;
  if (c.has(8)) y = c.add(y, c.reshape(c.in(8), channels));
  ValueId w_scale = c.in(4);
  const Type& s = c.type_of(w_scale);
  w_scale = s.known_rank && (s.rank() == 0 || s.dims[0] == Dim(1)) ? as_scalar(c, w_scale)
                                                                   : c.reshape(w_scale, channels);
  requantize(c, y, c.mul(as_scalar(c, c.in(1)), w_scale), c.in(6), c.in(7), 7);
}

}  // namespace

void add_product_quant_converters(Registry& r) {
  r.add("MatMulInteger", convert_matmul_integer);
  r.add("ConvInteger", convert_conv_integer);
  r.add("QLinearMatMul", convert_qlinear_matmul);
  r.add("QLinearConv", convert_qlinear_conv);
}

}  // namespace cyb::onnx
