// SPDX-License-Identifier: Apache-2.0
// Operators that make tensors: by shape, ranges, random numbers, windows.
#include <cmath>
#include <numbers>

#include "import/onnx/onnx.pb.h"
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

void convert_constant_of_shape(NodeContext& c) {
  Elem elem = Elem::f32;
  ValueId value;
  if (std::optional<Tensor> t = c.attr_tensor("value")) {
    if (t->elements() != 1) c.invalid("'value' must have one element");
    elem = static_cast<Elem>(c.attr("value")->t().data_type());
    value = c.constant(t->reshaped({}));
  } else {
    value = c.scalar(DType::f32, 0);
  }
  c.out(0, c.op(Op::Expand, {value, c.in(0)}), elem);
}

void convert_eye_like(NodeContext& c) {
  const ValueId x = c.in(0);
  if (c.rank(0) != 2) c.invalid("the operand must be a matrix");
  const Elem elem = elem_attr(c, "dtype", c.elem(0));
  const ValueId row = c.add(iota_along(c, x, 0), c.i64(c.attr_int("k", 0)));
  c.out(0, cast_elem(c, c.op(Op::Equal, {row, iota_along(c, x, 1)}), Elem::boolean, elem), elem);
}

void convert_range(NodeContext& c) {
  const DType type = c.dtype(0);
  std::vector<ValueId> bounds;
  // Small floats count in f32, as stash_type says by default.
  const bool narrow = (type == DType::f16 || type == DType::bf16) && c.attr_int("stash_type", 1) == 1;
  for (int i = 0; i < 3; i++) bounds.push_back(c.cast(as_scalar(c, c.in(i)), narrow ? DType::f32 : type));
  c.out(0, c.cast(c.op(Op::Range, bounds), type));
}

// ONNX's seeds are floats; any two differ here too.
int64_t seed_of(NodeContext& c) {
  const double seed = c.attr_float("seed", 0);
  if (std::trunc(seed) == seed && std::fabs(seed) < 9e15) return static_cast<int64_t>(seed);
  return std::bit_cast<int64_t>(seed);
}

DType drawn_type(NodeContext& c, Elem elem) {
  if (!is_float(held_as(elem))) c.unsupported(fmt::format("random numbers of type {}", to_string(elem)));
  return held_as(elem);
}

template <Op op, bool like>
void convert_random(NodeContext& c) {
  const bool normal = op == Op::RandomNormal;
  const Elem elem = elem_attr(c, "dtype", like ? c.elem(0) : Elem::f32);
  const ValueId shape = like ? c.shape_of(c.in(0)) : c.i64s(c.attr_ints("shape"));
  ir::RandomAttrs a{.a = normal ? c.attr_float("mean", 0) : c.attr_float("low", 0),
                    .b = normal ? c.attr_float("scale", 1) : c.attr_float("high", 1),
                    .seed = seed_of(c),
                    .stream = c.unique_number(),
                    .to = drawn_type(c, elem)};
  c.out(0, c.op(op, {shape}, a), elem);
}

void convert_bernoulli(NodeContext& c) {
  const ValueId x = c.in(0);
  const Elem elem = elem_attr(c, "dtype", c.elem(0));
  const ValueId drawn = c.op(Op::RandomUniform, {c.shape_of(x)},
                             ir::RandomAttrs{.seed = seed_of(c), .stream = c.unique_number()});
  const ValueId y = c.op(Op::Less, {drawn, c.cast(x, DType::f32)});
  c.out(0, cast_elem(c, y, Elem::boolean, elem), elem);
}

// a0 − a1·cos(2πn/N) + a2·cos(4πn/N), in f64.
void window(NodeContext& c, double a0, double a1, double a2) {
  const Elem elem = elem_attr(c, "output_datatype", Elem::f32);
  auto number = [&](double value) { return c.scalar(DType::f64, value); };
  const ValueId size = c.cast(as_scalar(c, c.in(0)), DType::i64);
  const ValueId n = c.cast(iota(c, size), DType::f64);
  const ValueId length = c.attr_int("periodic", 1) ? size : c.sub(size, c.i64(1));
  const ValueId angle = c.div(c.mul(n, number(2 * std::numbers::pi)), c.cast(length, DType::f64));
  ValueId y = c.sub(number(a0), c.mul(c.op(Op::Cos, {angle}), number(a1)));
  if (a2 != 0) y = c.add(y, c.mul(c.op(Op::Cos, {c.add(angle, angle)}), number(a2)));
  c.out(0, cast_elem(c, y, Elem::f64, elem), elem);
}
void convert_hann(NodeContext& c) { window(c, 0.5, 0.5, 0); }
void convert_hamming(NodeContext& c) { window(c, 25.0 / 46, 21.0 / 46, 0); }
void convert_blackman(NodeContext& c) { window(c, 0.42, 0.5, 0.08); }

// Triangles over the bins of a spectrum, their corners equally spaced in mel.
void convert_mel_weights(NodeContext& c) {
  const Elem elem = elem_attr(c, "output_datatype", Elem::f32);
  constexpr DType f64 = DType::f64;
  auto number = [&](double value) { return c.scalar(f64, value); };
  auto integer = [&](int i) { return c.cast(as_scalar(c, c.in(i)), DType::i64); };
  auto mel = [&](int i) {
    const ValueId hertz = c.cast(as_scalar(c, c.in(i)), f64);
    const ValueId log = c.op(Op::Log, {c.add(number(1), c.div(hertz, number(700)))});
    return c.mul(log, number(2595 / std::numbers::ln10));
  };
  const ValueId bands = integer(0), length = integer(1), low = mel(3), high = mel(4);
  const ValueId corners = c.add(bands, c.i64(2));
  const ValueId step = c.div(c.sub(high, low), c.cast(corners, f64));
  const ValueId at = c.add(c.mul(c.cast(iota(c, corners), f64), step), low);
  const ValueId power = c.op(Op::Exp, {c.mul(at, number(std::numbers::ln10 / 2595))});
  const ValueId hertz = c.mul(number(700), c.sub(power, number(1)));
  const ValueId samples = c.mul(c.cast(c.add(length, c.i64(1)), f64), hertz);
  const ValueId bin = c.op(Op::Floor, {c.div(samples, c.cast(integer(2), f64))});
  // A bin of the matrix's columns: the first, second or third corner of each band.
  auto corner = [&](int64_t first) {
    const ValueId start = c.i64s({first});
    const ValueId end = c.add(c.reshape(bands, {1}), start);
    return c.op(Op::Slice, {bin, start, end});
  };
  const ValueId left = corner(0), center = corner(1), right = corner(2);
  const ValueId rows = c.add(c.div(length, c.i64(2)), c.i64(1));
  const ValueId j = c.reshape(c.cast(iota(c, rows), f64), {-1, 1});
  auto both = [&](ValueId a, ValueId b) { return c.op(Op::And, {a, b}); };
  auto where = [&](ValueId p, ValueId a, ValueId b) { return c.op(Op::Where, {p, a, b}); };
  const ValueId zero = number(0);
  const ValueId rise = c.sub(center, left), fall = c.sub(right, center);
  const ValueId rising = both(c.op(Op::GreaterEqual, {j, left}), c.op(Op::LessEqual, {j, center}));
  const ValueId up = where(c.op(Op::Equal, {rise, zero}), c.cast(c.op(Op::Equal, {j, center}), f64),
                           where(rising, c.div(c.sub(j, left), rise), zero));
  const ValueId falling = both(c.op(Op::GreaterEqual, {j, center}), c.op(Op::Less, {j, right}));
  const ValueId y = where(falling, c.div(c.sub(right, j), fall), up);
  c.out(0, cast_elem(c, y, Elem::f64, elem), elem);
}

}  // namespace

void add_generator_converters(Registry& r) {
  r.add("ConstantOfShape", convert_constant_of_shape);
  r.add("EyeLike", convert_eye_like);
  r.add("Range", convert_range);
  r.add("RandomNormal", convert_random<Op::RandomNormal, false>);
  r.add("RandomNormalLike", convert_random<Op::RandomNormal, true>);
  r.add("RandomUniform", convert_random<Op::RandomUniform, false>);
  r.add("RandomUniformLike", convert_random<Op::RandomUniform, true>);
  r.add("Bernoulli", convert_bernoulli);
  r.add("HannWindow", convert_hann);
  r.add("HammingWindow", convert_hamming);
  r.add("BlackmanWindow", convert_blackman);
  r.add("MelWeightMatrix", convert_mel_weights);
}

}  // namespace cyb::onnx
