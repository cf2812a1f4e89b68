// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic, comparisons and logic.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

void convert_pow(NodeContext& c) {
  const ValueId x = c.in(0);
  ValueId exponent = second_in(c);
  const DType type = c.dtype(0), power = c.dtype(1);
  // x² needs no transcendental function, and is the same number.
  if (is_float(type) && is_scalar_of(c, exponent, 2) && c.type_of(exponent).rank() == 0)
    return c.out(0, c.mul(x, x));
  if (!is_float(type) && is_float(power)) {
    const ValueId y = c.op(Op::Pow, {c.cast(x, DType::f64), c.cast(exponent, DType::f64)});
    return c.out(0, c.cast(y, type));
  }
  exponent = c.cast(exponent, type);
  c.out(0, c.op(Op::Pow, {x, exponent}));
}

void convert_mod(NodeContext& c) {
  c.out(0, c.op(c.attr_int("fmod", 0) ? Op::FMod : Op::Mod, {c.in(0), c.in(1)}));
}

template <Op op>
void convert_variadic(NodeContext& c) {
  ValueId y = c.in(0);
  for (int i = 1; i < c.inputs(); i++) y = c.op(op, {y, c.in(i)});
  c.out(0, y);
}

void convert_mean(NodeContext& c) {
  ValueId y = c.in(0);
  for (int i = 1; i < c.inputs(); i++) y = c.add(y, c.in(i));
  if (c.inputs() > 1) y = c.div(y, c.like(y, c.inputs()));
  c.out(0, y);
}

void convert_bit_shift(NodeContext& c) {
  const std::string direction = c.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") c.invalid(fmt::format("direction is '{}'", direction));
  c.out(0, c.op(direction == "LEFT" ? Op::ShiftLeft : Op::ShiftRight, {c.in(0), c.in(1)}));
}

void convert_is_inf(NodeContext& c) {
  c.out(0, c.op(Op::IsInf, {c.in(0)},
                ir::IsInfAttrs{.positive = c.attr_int("detect_positive", 1) != 0,
                               .negative = c.attr_int("detect_negative", 1) != 0}));
}

void convert_where(NodeContext& c) { keep(c, c.op(Op::Where, {c.in(0), c.in(1), c.in(2)}), 1); }

void convert_clip(NodeContext& c) {
  ValueId x = c.in(0);
  const DType type = c.dtype(0);
  if (c.opset() < 11) {
    ir::ClampAttrs a;
    if (c.has_attr("min")) a.min = c.attr_float("min", 0);
    if (c.has_attr("max")) a.max = c.attr_float("max", 0);
    return c.out(0, c.op(Op::Clamp, {x}, a));
  }
  const Tensor* low = c.constant_in(1);
  const Tensor* high = c.constant_in(2);
  // Bounds that doubles hold exactly go into attributes.
  if (is_float(type) && (!c.has(1) || (low && low->elements() == 1)) &&
      (!c.has(2) || (high && high->elements() == 1))) {
    ir::ClampAttrs a;
    if (low) a.min = low->real(0);
    if (high) a.max = high->real(0);
    return c.out(0, c.has(1) || c.has(2) ? c.op(Op::Clamp, {x}, a) : x);
  }
  if (c.has(1)) x = c.op(Op::Max, {x, as_scalar(c, c.in(1))});
  if (c.has(2)) x = c.op(Op::Min, {x, as_scalar(c, c.in(2))});
  c.out(0, x);
}

}  // namespace

void add_math_converters(Registry& r) {
  r.add("Abs", convert_unary<Op::Abs>);
  r.add("Neg", convert_unary<Op::Neg>);
  r.add("Exp", convert_unary<Op::Exp>);
  r.add("Log", convert_unary<Op::Log>);
  r.add("Sqrt", convert_unary<Op::Sqrt>);
  r.add("Erf", convert_unary<Op::Erf>);
  r.add("Reciprocal", convert_unary<Op::Reciprocal>);
  r.add("Floor", convert_unary<Op::Floor>);
  r.add("Ceil", convert_unary<Op::Ceil>);
  r.add("Round", convert_unary<Op::Round>);
  r.add("Sin", convert_unary<Op::Sin>);
  r.add("Cos", convert_unary<Op::Cos>);
  r.add("Tan", convert_unary<Op::Tan>);
  r.add("Asin", convert_unary<Op::Asin>);
  r.add("Acos", convert_unary<Op::Acos>);
  r.add("Atan", convert_unary<Op::Atan>);
  r.add("Sinh", convert_unary<Op::Sinh>);
  r.add("Cosh", convert_unary<Op::Cosh>);
  r.add("Asinh", convert_unary<Op::Asinh>);
  r.add("Acosh", convert_unary<Op::Acosh>);
  r.add("Atanh", convert_unary<Op::Atanh>);
  r.add("Sign", convert_unary<Op::Sign>);
  r.add("IsNaN", convert_unary<Op::IsNan>);
  r.add("IsInf", convert_is_inf);
  r.add("Not", convert_unary<Op::Not>);
  r.add("BitwiseNot", convert_unary<Op::BitNot>);
  r.add("Add", convert_binary<Op::Add>);
  r.add("Sub", convert_binary<Op::Sub>);
  r.add("Mul", convert_binary<Op::Mul>);
  r.add("Div", convert_binary<Op::Div>);
  r.add("Pow", convert_pow);
  r.add("Mod", convert_mod);
  r.add("Min", convert_variadic<Op::Min>);
  r.add("Max", convert_variadic<Op::Max>);
  r.add("Sum", convert_variadic<Op::Add>);
  r.add("Mean", convert_mean);
  r.add("Equal", convert_binary<Op::Equal>);
  r.add("Less", convert_binary<Op::Less>);
  r.add("LessOrEqual", convert_binary<Op::LessEqual>);
  r.add("Greater", convert_binary<Op::Greater>);
  r.add("GreaterOrEqual", convert_binary<Op::GreaterEqual>);
  r.add("And", convert_binary<Op::And>);
  r.add("Or", convert_binary<Op::Or>);
  r.add("Xor", convert_binary<Op::Xor>);
  r.add("BitShift", convert_bit_shift);
  r.add("BitwiseAnd", convert_binary<Op::BitAnd>);
  r.add("BitwiseOr", convert_binary<Op::BitOr>);
  r.add("BitwiseXor", convert_binary<Op::BitXor>);
  r.add("Where", convert_where);
  r.add("Clip", convert_clip);
  r.add("Det", convert_unary<Op::Det>);
  add_activation_converters(r);
  add_cast_converters(r);
  add_generator_converters(r);
}

}  // namespace cyb::onnx
