// SPDX-License-Identifier: Apache-2.0
// Shape rules of quantization and of products of 8-bit integers.
#include "ir/ops/recurrent.h"
#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

// The scale (and zero point) must be one value, one for each index of the axis, or one a block along it.
void check_scales(const InferContext& c, const QuantizeAttrs& a, const Type& x, int operand) {
  const Type& s = c.type(operand);
  const char* what = operand == 1 ? "scale" : "zero point";
  if (s.rank() == 0) return;
  if (a.block == 0) {
    c.require(s.rank() == 1, fmt::format("the {} must be one value or a vector", what));
    if (s.dims[0] == Dim(1)) return;
    c.same(s.dims[0], x.dims[static_cast<size_t>(c.axis(a.axis, x.rank()))], "scales and the axis");
    return;
  }
  c.require(s.rank() == x.rank(), fmt::format("the {} of blocks must have x's rank", what));
  const auto axis = static_cast<size_t>(c.axis(a.axis, x.rank()));
  for (size_t i = 0; i < x.dims.size(); i++) {
    Dim want = x.dims[i];
    if (i == axis) want = want.is_number() ? Dim((want.number() + a.block - 1) / a.block) : Dim();
    c.same(want, s.dims[i], "blocks");
  }
}

void check_bits(const InferContext& c, const QuantizeAttrs& a, DType codes) {
  c.require(a.bits == 0 || ((a.bits == 2 || a.bits == 4) && (codes == DType::i8 || codes == DType::u8)),
            "bits must be 0, 2 or 4, with an 8-bit type");
  c.require(a.block >= 0 && a.block < int64_t{1} << 40, "block must not be negative");
}

bool byte(DType t) { return t == DType::i8 || t == DType::u8; }

}  // namespace

void rule_quantize(InferContext& c) {
  const auto& a = c.attrs<QuantizeAttrs>();
  const Type& x = c.type(0);
  c.require(is_float(x.dtype) || x.dtype == DType::i32, "x must be floats or i32");
  c.require(is_float(c.type(1).dtype), "the scale must be of a float type");
  c.require(byte(a.to) || a.to == DType::i16 || a.to == DType::u16 || is_float(a.to),
            "to must be an 8- or 16-bit integer or a float type");
  check_bits(c, a, a.to);
  check_scales(c, a, x, 1);
  if (c.has(2)) {
    c.require(c.type(2).dtype == a.to, "the zero point must be of the result's type");
    check_scales(c, a, x, 2);
  }
  c.result(0, {a.to, x.dims});
}

void rule_dequantize(InferContext& c) {
  const auto& a = c.attrs<QuantizeAttrs>();
  const Type& x = c.type(0);
  c.require(is_float(x.dtype) || is_integer(x.dtype), "x must be numbers");
  c.require(is_float(c.type(1).dtype), "the scale must be of a float type");
  check_bits(c, a, x.dtype);
  check_scales(c, a, x, 1);
  if (c.has(2)) {
    c.require(c.type(2).dtype == x.dtype, "the zero point must be of x's type");
    check_scales(c, a, x, 2);
  }
  c.result(0, {is_float(a.to) ? a.to : c.type(1).dtype, x.dims});
}

void rule_dynamic_quantize(InferContext& c) {
  c.require(c.type(0).dtype == DType::f32, "x must be f32");
  c.result(0, {DType::u8, c.type(0).dims});
  c.result(1, {DType::f32, {}});
  c.result(2, {DType::u8, {}});
}

void rule_matmul_integer(InferContext& c) {
  Dims a = c.type(0).dims, b = c.type(1).dims;
  c.require(byte(c.type(0).dtype) && byte(c.type(1).dtype), "operands must be 8-bit integers");
  c.require(!a.empty() && !b.empty(), "scalars have no product");
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b.push_back(Dim(1));
  const Dim m = a[a.size() - 2], n = b.back();
  c.same(a.back(), b[b.size() - 2], "inner axes");
  for (int i = 2; i < 4; i++) {
    if (!c.has(i)) continue;
    const Type& z = c.type(i);
    c.require(z.dtype == c.type(i - 2).dtype, "a zero point must be of its operand's type");
    if (z.rank() == 0 || (z.rank() == 1 && z.dims[0] == Dim(1))) continue;
    const Dims& of = i == 2 ? a : b;
    if (z.rank() == 1) {
      c.same(z.dims[0], i == 2 ? m : n, i == 2 ? "zero points and rows" : "zero points and columns");
      continue;
    }
    c.require(z.rank() == static_cast<int>(of.size()),
              "zero points must be one value, a vector, or of the operand's rank");
    for (size_t d = 0; d < of.size(); d++)
      c.same(z.dims[d], d == (i == 2 ? of.size() - 1 : of.size() - 2) ? Dim(1) : of[d],
             "zero points and operand");
  }
  Dims out = c.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) out.push_back(m);
  if (!column) out.push_back(n);
  c.result(0, {DType::i32, out});
}

void rule_small_float_encode(InferContext& c) {
  c.require(is_float(c.type(0).dtype), "x must be of a float type");
  c.result(0, {DType::u8, c.type(0).dims});
}

void rule_small_float_decode(InferContext& c) {
  const DType to = c.attrs<SmallFloatAttrs>().to;
  c.require(c.type(0).dtype == DType::u8, "x must be codes in u8");
  c.require(is_float(to), "to must be a float type");
  c.result(0, {to, c.type(0).dims});
}

}  // namespace cyb::ir
