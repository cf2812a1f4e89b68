// SPDX-License-Identifier: Apache-2.0
// com.microsoft's operators on quantized values. Integer sums are exact; what follows is f32.
#include <cstring>

#include "import/onnx/ops.h"
#include "import/onnx/ops_contrib.h"

namespace cyb::onnx {

using namespace ir;

namespace {

ValueId dequantized(NodeContext& c, ValueId x, ValueId scale, ValueId zero) {
  std::vector<ValueId> operands = {x, as_scalar(c, scale)};
  if (zero != kNone) operands.push_back(as_scalar(c, zero));
  return c.op(Op::Dequantize, operands, QuantizeAttrs{.axis = 0, .to = DType::f32});
}

// Without a zero point it is 0, of the operand's type.
ValueId quantized(NodeContext& c, ValueId x, ValueId scale, ValueId zero, DType to) {
  std::vector<ValueId> operands = {x, as_scalar(c, scale)};
  if (zero != kNone) operands.push_back(as_scalar(c, zero));
  return c.op(Op::Quantize, operands, QuantizeAttrs{.axis = 0, .to = to});
}

ValueId integer_product(NodeContext& c, ValueId a, ValueId b, ValueId a_zero, ValueId b_zero, ValueId factor,
                        ValueId bias) {
  const ValueId sums = c.op(Op::MatmulInteger, trimmed({a, b, a_zero, b_zero}));
  const ValueId y = c.mul(c.cast(sums, c.type_of(factor).dtype), factor);
  return bias == kNone ? y : c.add(y, bias);
}

void convert_matmul_integer_to_float(NodeContext& c) {
  c.out(0, integer_product(c, c.in(0), c.in(1), c.in_or_none(4), c.in_or_none(5), c.mul(c.in(2), c.in(3)),
                           c.in_or_none(6)));
}

void convert_dynamic_quantize_matmul(NodeContext& c) {
  const auto q = c.ops(Op::DynamicQuantize, {c.in(0)}, NoAttrs{}, 3);
  c.out(0, integer_product(c, q[0], c.in(1), q[2], c.in_or_none(3), c.mul(q[1], c.in(2)), c.in_or_none(4)));
}

template <Op kOp>
void convert_qlinear_binary(NodeContext& c) {
  const ValueId a = dequantized(c, c.in(0), c.in(1), c.in_or_none(2));
  const ValueId b = dequantized(c, c.in(3), c.in(4), c.in_or_none(5));
  c.out(0, quantized(c, c.op(kOp, {a, b}), c.in(6), c.in_or_none(7), c.dtype(0)));
}

// x, its scale and zero point, then the result's.
template <class F>
void unary(NodeContext& c, F&& f) {
  const ValueId x = dequantized(c, c.in(0), c.in(1), c.in_or_none(2));
  c.out(0, quantized(c, f(x), c.in(3), c.in_or_none(4), c.dtype(0)));
}

void convert_qlinear_sigmoid(NodeContext& c) {
  unary(c, [&](ValueId x) { return c.op(Op::Sigmoid, {x}); });
}

void convert_qlinear_leaky_relu(NodeContext& c) {
  unary(c, [&](ValueId x) { return c.op(Op::LeakyRelu, {x}, AlphaAttrs{c.attr_float("alpha", 0.01)}); });
}

void convert_qlinear_softmax(NodeContext& c) {
  if (c.attr_int("opset", 13) < 13 && c.attr_int("axis", -1) != -1 && c.attr_int("axis", -1) != c.rank(0) - 1)
    c.unsupported("a softmax over several axes");
  unary(c, [&](ValueId x) { return c.op(Op::Softmax, {x}, AxisAttrs{c.attr_int("axis", -1)}); });
}

void convert_qlinear_global_average_pool(NodeContext& c) {
  const bool last = c.attr_int("channels_last", 0) != 0;
  const int rank = c.rank(0);
  unary(c, [&](ValueId x) {
    return reduce(c, Op::ReduceMean, x, last ? axes_from(1, rank - 1) : axes_from(2, rank));
  });
}

void convert_qlinear_concat(NodeContext& c) {
  std::vector<ValueId> parts;
  if (c.inputs() < 5 || (c.inputs() - 2) % 3 != 0)
    c.invalid("operands are a scale, a zero point, then threes");
  for (int i = 2; i < c.inputs(); i += 3)
    parts.push_back(dequantized(c, c.in(i), c.in(i + 1), c.in_or_none(i + 2)));
  c.out(0, quantized(c, c.concat(parts, c.attr_int("axis", 0)), c.in(0), c.in_or_none(1), c.dtype(2)));
}

// Integer i of a row of packed ones, the first in the lowest bits.
int unpack(const uint8_t* row, int64_t i, int64_t bits) {
  const int64_t per_byte = 8 / bits;
  const int shift = static_cast<int>(i % per_byte * bits);
  return row[i / per_byte] >> shift & ((1 << bits) - 1);
}

// The matrix [N, K] that packed blocks of 2, 4 or 8 bits stand for. It is expanded here, once, into f32,
// which the file's own encoding may then compress; products do not see the original packing.
Tensor expanded_weight(NodeContext& c, int64_t n, int64_t k, int64_t bits, int64_t block) {
  const Tensor* packed = c.constant_in(1);
  const Tensor* scales = c.constant_in(2);
  const Tensor* zeros = c.constant_in(3);
  if (!packed || !scales || (c.has(3) && !zeros)) c.unsupported("weights that only a run can tell");
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8;
  const int64_t zero_bytes = (blocks * bits + 7) / 8;
  const bool packed_zeros = zeros && zeros->type() == DType::u8;
  if (packed->type() != DType::u8 || blocks > INT32_MAX || n > INT32_MAX ||
      packed->elements() != n * blocks * bytes || scales->elements() != n * blocks ||
      (zeros && zeros->elements() != n * (packed_zeros ? zero_bytes : blocks)))
    c.invalid("packed weights, scales or zero points do not fit N, K, bits and block_size");
  Tensor out(DType::f32, {n, k});
  const auto* codes = packed->as<uint8_t>();
  const float middle = static_cast<float>(1 << (bits - 1));
  for (int64_t r = 0; r < n; r++) {
    float* row = &out.at<float>(static_cast<size_t>(r * k));
    for (int64_t b = 0; b < blocks; b++) {
      const auto at = static_cast<size_t>(r * blocks + b);
      const float scale = static_cast<float>(scales->real(at));
      float zero = middle;
      if (packed_zeros)
        zero = static_cast<float>(unpack(zeros->as<uint8_t>() + r * zero_bytes, b, bits));
      else if (zeros)
        zero = static_cast<float>(zeros->real(at));
      const uint8_t* from = codes + static_cast<int64_t>(at) * bytes;
      for (int64_t i = 0; i < block && b * block + i < k; i++)
        row[b * block + i] = (static_cast<float>(unpack(from, i, bits)) - zero) * scale;
    }
  }
  return out;
}

void convert_matmul_nbits(NodeContext& c) {
  if (c.has(4)) c.unsupported("operand 'g_idx'");
  if (c.attr_int("weight_prepacked", 0)) c.unsupported("weight_prepacked");
  const int64_t n = c.attr_int("N", 0), k = c.attr_int("K", 0), bits = c.attr_int("bits", 4);
  const int64_t block = c.attr_int("block_size", 0);
  if (bits != 2 && bits != 4 && bits != 8) c.unsupported(fmt::format("{} bits", bits));
  if (n < 1 || k < 1 || k > INT32_MAX || block < 8 || block > (1 << 20) || block % 8 != 0)
    c.invalid(fmt::format("N = {}, K = {}, block_size = {}", n, k, block));
  const ValueId w = c.constant(expanded_weight(c, n, k, bits, block));
  std::vector<ValueId> operands = {c.cast(c.in(0), DType::f32), w};
  if (c.has(5)) operands.push_back(c.cast(c.in(5), DType::f32));
  c.out(0, c.cast(c.op(Op::Matmul, operands, MatmulAttrs{.form = MatmulForm::nt}), c.dtype(0)));
}

}  // namespace

void add_contrib_quant_converters(Registry& r) {
  constexpr std::string_view kMs = "com.microsoft";
  r.add("MatMulIntegerToFloat", convert_matmul_integer_to_float, kMs);
  r.add("DynamicQuantizeMatMul", convert_dynamic_quantize_matmul, kMs);
  r.add("QLinearAdd", convert_qlinear_binary<Op::Add>, kMs);
  r.add("QLinearMul", convert_qlinear_binary<Op::Mul>, kMs);
  r.add("QLinearSigmoid", convert_qlinear_sigmoid, kMs);
  r.add("QLinearLeakyRelu", convert_qlinear_leaky_relu, kMs);
  r.add("QLinearSoftmax", convert_qlinear_softmax, kMs);
  r.add("QLinearGlobalAveragePool", convert_qlinear_global_average_pool, kMs);
  r.add("QLinearConcat", convert_qlinear_concat, kMs);
  r.add("MatMulNBits", convert_matmul_nbits, kMs);
}

}  // namespace cyb::onnx
