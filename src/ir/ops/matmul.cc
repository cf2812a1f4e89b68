// SPDX-License-Identifier: Apache-2.0
#include "ir/ops/matmul.h"

#include "ir/ops/rules.h"

namespace cyb::ir {
namespace {

// x [..., K] · w [N, K]ᵀ → [..., N].
Type product(const InferContext& c, int x, int w) {
  const Type& a = c.type(x);
  const Type& b = c.type(w);
  c.require(a.rank() >= 1 && b.rank() == 2, "needs x of rank ≥ 1 and a matrix");
  c.require(a.dtype == b.dtype && is_float(a.dtype), "operands must be floats of one type");
  c.same(a.dims.back(), b.dims[1], "inner axes");
  Type t = a;
  t.dims.back() = b.dims[0];
  return t;
}

void check_bias(const InferContext& c, int operand, const Type& product) {
  const Type& bias = c.type(operand);
  c.require(bias.rank() == 1 && bias.dtype == product.dtype, "the bias must be a vector of the same type");
  c.same(bias.dims[0], product.dims.back(), "bias and rows of w");
}

}  // namespace

void rule_matmul(InferContext& c) {
  const Type& x = c.type(0);
  const Type& w = c.type(1);
  c.require(x.dtype == w.dtype && (is_float(x.dtype) || (is_integer(x.dtype) && size_of(x.dtype) >= 4)),
            "operands must be of one type, floats or integers of 32 or 64 bits");
  c.require(x.rank() >= 1 && w.rank() >= 1, "scalars have no product");
  const bool nt = c.attrs<MatmulAttrs>().form == MatmulForm::nt;
  // One-dimensional operands are a row on the left, a column on the right, as numpy has it.
  Dims a = x.dims, b = w.dims;
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), Dim(1));
  if (column) b = nt ? Dims{Dim(1), b[0]} : Dims{b[0], Dim(1)};
  const Dim k = nt ? b.back() : b[b.size() - 2];
  const Dim n = nt ? b[b.size() - 2] : b.back();
  c.same(a.back(), k, "inner axes");
  Dims out = c.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) out.push_back(a[a.size() - 2]);
  if (!column) out.push_back(n);
  if (c.has(2)) {
    c.require(c.type(2).rank() == 1 && c.type(2).dtype == x.dtype,
              "the bias must be a vector of the same type");
    c.same(c.type(2).dims[0], n, "bias and rows of w");
  }
  c.result(0, {x.dtype, out});
}

void rule_det(InferContext& c) {
  Type t = c.type(0);
  c.require(t.rank() >= 2 && is_float(t.dtype), "needs floats of rank ≥ 2");
  c.same(t.dims[t.dims.size() - 1], t.dims[t.dims.size() - 2], "rows and columns");
  t.dims.resize(t.dims.size() - 2);
  c.result(0, t);
}

void rule_token_embed(InferContext& c) {
  const Type& ids = c.type(0);
  c.require(ids.dtype == DType::i32 || ids.dtype == DType::i64, "ids must be i32 or i64");
  c.require(c.type(1).rank() == 2 && c.type(1).dtype == DType::f32, "the table must be a matrix f32[V, D]");
  Type t{DType::f32, ids.dims};
  t.dims.push_back(c.type(1).dims[1]);
  c.result(0, t);
}

void rule_fused_norm_matmul(InferContext& c) {
  c.require(c.operands() >= 4 && c.operands() % 2 == 0,
            "operands are x, norm, then pairs of matrix and bias");
  c.require(c.node().results.size() * 2 + 2 == static_cast<size_t>(c.operands()),
            "one result for each matrix");
  if (c.has(1)) c.same(c.type(0).dims.back(), c.type(1).dims.back(), "x and the norm");
  for (int i = 0; i * 2 + 2 < c.operands(); i++) {
    const Type t = product(c, 0, i * 2 + 2);
    if (c.has(i * 2 + 3)) check_bias(c, i * 2 + 3, t);
    c.result(i, t);
  }
}

void rule_fused_matmul(InferContext& c) {
  Type t = product(c, 0, 1);
  if (c.has(2)) check_bias(c, 2, t);
  if (c.has(3)) {
    const Type& r = c.type(3);
    c.require(r.dtype == t.dtype && r.rank() == t.rank(), "the residual must be as the result");
    for (size_t i = 0; i < t.dims.size(); i++)
      t.dims[i] = c.same(t.dims[i], r.dims[i], "result and residual");
  }
  c.result(0, t);
}

void rule_fused_swi_glu(InferContext& c) {
  Type t = product(c, 0, 1);
  t.dims.back() = c.same(t.dims.back(), product(c, 0, 2).dims.back(), "rows of the two matrices");
  c.result(0, t);
}

}  // namespace cyb::ir
