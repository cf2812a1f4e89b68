// SPDX-License-Identifier: Apache-2.0
// Cast, CastLike, BitCast: between all element types, those that ONNX packs or encodes among them.
#include <charconv>
#include <cmath>

#include "import/onnx/ops.h"

namespace cyb::onnx {

bool is_small_int(Elem elem) {
  return elem == Elem::u4 || elem == Elem::i4 || elem == Elem::u2 || elem == Elem::i2;
}

int64_t bits_of(Elem elem) {
  return elem == Elem::u4 || elem == Elem::i4 ? 4 : elem == Elem::u2 || elem == Elem::i2 ? 2 : 0;
}

Elem elem_attr(NodeContext& c, std::string_view name, Elem fallback) {
  const int64_t value = c.attr_int(name, 0);
  if (value == 0) return fallback;
  if (value < 0 || value > static_cast<int64_t>(Elem::i2))
    c.invalid(fmt::format("{} names element type {}, which does not exist", name, value));
  return static_cast<Elem>(value);
}

namespace {

ir::SmallFloat format_of(Elem elem) {
  switch (elem) {
    case Elem::f8e4m3fnuz:
      return ir::SmallFloat::e4m3fnuz;
    case Elem::f8e5m2:
      return ir::SmallFloat::e5m2;
    case Elem::f8e5m2fnuz:
      return ir::SmallFloat::e5m2fnuz;
    case Elem::f8e8m0:
      return ir::SmallFloat::e8m0;
    case Elem::f4e2m1:
      return ir::SmallFloat::e2m1;
    default:
      return ir::SmallFloat::e4m3fn;
  }
}

// The low bits of an integer, with or without sign.
ValueId wrap_bits(NodeContext& c, ValueId x, Elem to) {
  const int64_t bits = bits_of(to);
  ValueId v = c.cast(x, DType::i32);
  v = c.op(Op::BitAnd, {v, c.scalar(DType::i32, static_cast<double>((1 << bits) - 1))});
  if (to == Elem::i4 || to == Elem::i2) {
    const ValueId sign = c.scalar(DType::i32, static_cast<double>(1 << (bits - 1)));
    v = c.sub(c.op(Op::BitXor, {v, sign}), sign);
  }
  return c.cast(v, held_as(to));
}

// Strings are converted where they are constants.
ValueId parse_strings(NodeContext& c, ValueId x, Elem to) {
  const Tensor* t = c.constant(x);
  if (!t) c.unsupported("strings to numbers in a run");
  Tensor out(held_as(to), t->shape());
  for (size_t i = 0; i < t->strings().size(); i++) {
    const std::string& s = t->strings()[i];
    double value = 0;
    const auto [end, fault] = std::from_chars(s.data(), s.data() + s.size(), value);
    if (fault != std::errc() || end != s.data() + s.size()) c.invalid(fmt::format("'{}' is not a number", s));
    out.set_real(i, is_float(held_as(to)) ? value : std::trunc(value));
  }
  return c.constant(std::move(out));
}

ValueId print_numbers(NodeContext& c, ValueId x, Elem from) {
  const Tensor* t = c.constant(x);
  if (!t || is_small_float(from)) c.unsupported("numbers to strings in a run");
  Tensor out(DType::string, t->shape());
  out.strings().clear();
  for (int64_t i = 0; i < t->elements(); i++) {
    const auto at = static_cast<size_t>(i);
    if (from == Elem::f32)
      out.strings().push_back(fmt::format("{}", t->at<float>(at)));
    else if (is_float(t->type()))
      out.strings().push_back(fmt::format("{}", t->real(at)));
    else
      out.strings().push_back(fmt::format("{}", t->integer(at)));
  }
  return c.constant(std::move(out));
}

ElemCast how_of(NodeContext& c) {
  ElemCast how;
  how.saturate = c.attr_int("saturate", 1) != 0;
  how.round = c.attr_string("round_mode", "up");
  return how;
}

void convert_cast(NodeContext& c) {
  const Elem to = elem_attr(c, "to", Elem::undefined);
  if (to == Elem::undefined) c.invalid("'to' is missing");
  c.out(0, cast_elem(c, c.in(0), c.elem(0), to, how_of(c)), to);
}

void convert_cast_like(NodeContext& c) {
  const Elem to = c.elem(1);
  c.out(0, cast_elem(c, c.in(0), c.elem(0), to, how_of(c)), to);
}

void convert_bit_cast(NodeContext& c) {
  const Elem from = c.elem(0), to = elem_attr(c, "to", Elem::undefined);
  if (to == Elem::undefined) c.invalid("'to' is missing");
  auto width = [](Elem e) -> int64_t {
    if (e == Elem::f4e2m1) return 4;
    return is_small_int(e) ? bits_of(e) : static_cast<int64_t>(size_of(held_as(e))) * 8;
  };
  if (from == Elem::string || to == Elem::string || width(from) != width(to))
    c.invalid(fmt::format("{} and {} differ in size", to_string(from), to_string(to)));
  ValueId x = c.in(0);
  // Narrow types are held in 8 bits: the sign is extended or cut.
  if (is_small_int(to))
    x = wrap_bits(c, x, to);
  else if (to == Elem::f4e2m1 && from == Elem::i4)
    x = wrap_bits(c, x, Elem::u4);
  else if (held_as(from) != held_as(to))
    x = c.op(Op::BitCast, {x}, ir::CastAttrs{.to = held_as(to)});
  c.out(0, x, to);
}

}  // namespace

ValueId cast_elem(NodeContext& c, ValueId x, Elem from, Elem to, const ElemCast& how) {
  if (from == to) return x;
  if (from == Elem::string) return parse_strings(c, x, to);
  if (to == Elem::string) return print_numbers(c, x, from);
  if (is_small_float(from)) {
    x = c.op(Op::SmallFloatDecode, {x}, ir::SmallFloatAttrs{.format = format_of(from)});
    from = Elem::f32;
  }
  if (is_small_float(to)) {
    ir::SmallFloatAttrs a{.format = format_of(to), .saturate = how.saturate};
    if (how.round == "down")
      a.round = ir::SmallRounding::down;
    else if (how.round == "nearest")
      a.round = ir::SmallRounding::nearest;
    else if (how.round == "up")
      a.round = ir::SmallRounding::up;
    else
      c.invalid(fmt::format("round_mode is '{}'", how.round));
    if (to != Elem::f8e8m0) a.round = ir::SmallRounding::nearest;
    return c.op(Op::SmallFloatEncode, {c.cast(x, DType::f32)}, a);
  }
  if (is_small_int(to)) return wrap_bits(c, x, to);
  return c.cast(x, held_as(to));
}

void add_cast_converters(Registry& r) {
  r.add("Cast", convert_cast);
  r.add("CastLike", convert_cast_like);
  r.add("BitCast", convert_bit_cast);
}

}  // namespace cyb::onnx
