// SPDX-License-Identifier: Apache-2.0
// MatMul and Gemm.
#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

// Integers multiply in f64, which holds their sums exactly up to 2^53.
void convert_matmul(NodeContext& c) {
  const DType type = c.dtype(0);
  if (is_float(type)) return c.out(0, c.matmul(c.in(0), c.in(1)));
  c.out(0, c.cast(c.matmul(c.cast(c.in(0), DType::f64), c.cast(c.in(1), DType::f64)), type));
}

// Whether `bias` can be the product's own: one value for each of its n columns.
bool is_row(const Type& bias, Dim n) {
  if (!bias.known_rank || !n.is_number() || bias.rank() < 1 || bias.rank() > 2) return false;
  return bias.dims.back() == n && (bias.rank() == 1 || bias.dims[0] == Dim(1));
}

// alpha·A·B + beta·C. Factors go into what is constant.
ValueId gemm(NodeContext& c, ValueId a, ValueId b, ValueId bias, double alpha, double beta) {
  if (c.attr_int("transA", 0)) a = c.permute(a, {1, 0});
  const bool transposed = c.attr_int("transB", 0) != 0, constant = c.constant(b) != nullptr;
  if (alpha != 1 && constant) b = c.mul(b, c.like(b, alpha));
  const bool nt = transposed || constant;
  if (constant && !transposed) b = c.permute(b, {1, 0});
  const Type& w = c.type_of(b);
  if (w.known_rank && w.rank() != 2) c.invalid("B must be a matrix");
  const Dim n = w.known_rank ? w.dims[nt ? 0 : 1] : Dim();
  if (beta == 0) bias = kNone;
  if (bias != kNone && beta != 1) bias = c.mul(bias, c.like(bias, beta));
  const ir::MatmulAttrs form{.form = nt ? ir::MatmulForm::nt : ir::MatmulForm::nn};
  const bool scaled_after = alpha != 1 && !constant;
  if (bias != kNone && !scaled_after && is_row(c.type_of(bias), n))
    return c.op(Op::Matmul, {a, b, c.reshape(bias, {-1})}, form);
  ValueId y = c.op(Op::Matmul, {a, b}, form);
  if (scaled_after) y = c.mul(y, c.like(y, alpha));
  return bias == kNone ? y : c.add(y, bias);
}

void convert_gemm(NodeContext& c) {
  const DType type = c.dtype(0);
  const DType work = is_float(type) ? type : DType::f64;
  const ValueId bias = c.has(2) ? c.cast(c.in(2), work) : kNone;
  const ValueId y = gemm(c, c.cast(c.in(0), work), c.cast(c.in(1), work), bias, c.attr_float("alpha", 1),
                         c.attr_float("beta", 1));
  c.out(0, c.cast(y, type));
}

}  // namespace

void add_matmul_converters(Registry& r) {
  r.add("MatMul", convert_matmul);
  r.add("Gemm", convert_gemm);
  add_einsum_converters(r);
}

}  // namespace cyb::onnx
