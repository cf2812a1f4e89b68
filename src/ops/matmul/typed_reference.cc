// SPDX-License-Identifier: Apache-2.0
// Products of floats that are not f32, by their definition: sums in f64, rounded once.
#include "ir/ops/matmul.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

namespace {

const char* reject(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && (q.dtype(i) == DType::f32 || !is_float(q.dtype(i)))) return "not f64, f16 or bf16";
  return nullptr;
}

// A vector is a row on the left, a column on the right.
Shape matrices(const Shape& s, bool row_first) {
  if (s.rank() != 1) return s;
  return row_first ? Shape{1, s[0]} : Shape{s[0], 1};
}

Shape leading(const Shape& s) { return Shape({s.begin(), static_cast<size_t>(s.rank() - 2)}); }

void run(Call& c) {
  const bool nt = c.attrs<ir::MatmulAttrs>().form == ir::MatmulForm::nt;
  const Shape a = matrices(c.in[0].shape, true), b = matrices(c.in[1].shape, nt);
  const int64_t m = a[a.rank() - 2], k = a.back(), n = nt ? b[b.rank() - 2] : b.back();
  const int64_t b_n = nt ? k : 1, b_k = nt ? 1 : n;
  const Shape x = leading(a), w = leading(b);
  Shape batch;
  for (int i = std::max(x.rank(), w.rank()); i > 0; i--) {
    const int64_t dx = i > x.rank() ? 1 : x[x.rank() - i], dw = i > w.rank() ? 1 : w[w.rank() - i];
    batch.push_back(dx == 1 ? dw : dx);
  }
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* bias = c.has(2) ? c.in[2].as<T>() : nullptr;
    const std::array strides = {broadcast_strides(x, batch), broadcast_strides(w, batch)};
    walk(batch, strides, [&](int64_t index, const auto& at) {
      c.pool->parallel_for(m, 1, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; i++) {
          const T* left = c.in[0].as<T>() + (at[0] * m + i) * k;
          T* y = c.out[0].as<T>() + (index * m + i) * n;
          for (int64_t j = 0; j < n; j++) {
            const T* right = c.in[1].as<T>() + at[1] * n * k + j * b_n;
            double sum = bias ? static_cast<double>(bias[j]) : 0.0;
            for (int64_t p = 0; p < k; p++)
              sum += static_cast<double>(left[p]) * static_cast<double>(right[p * b_k]);
            if constexpr (std::is_same_v<T, double>)
              y[j] = sum;
            else
              y[j] = T(static_cast<float>(sum));
          }
        }
      });
    });
  });
}

}  // namespace

void add_typed_matmul_rows(KernelTable& t) {
  t.add({.op = ir::Op::Matmul, .name = "matmul_typed_reference", .cost = 1001, .reject = reject, .run = run});
}

}  // namespace cyb::cpu
