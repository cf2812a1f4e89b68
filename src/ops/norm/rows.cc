// SPDX-License-Identifier: Apache-2.0
// Kernel rows of norms.
#include "ops/rows.h"

#include <cmath>

#include "ir/ops/common.h"

namespace cyb::cpu {

using ir::Op;

namespace {

int64_t rows_of(const Arg& x) { return x.shape.elements(0, x.shape.rank() - 1); }

const char* only_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

template <Isa isa>
void run_rms_norm(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  rms_norm_rows(*c.pool, isa, c.in[0].f32(), c.has(1) ? c.in[1].f32() : nullptr, a.offset,
                static_cast<float>(a.eps), rows_of(c.in[0]), c.in[0].shape.back(), c.out[0].f32());
}

template <Isa isa>
void run_skip_norm(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  const int64_t n = c.in[0].shape.back(), rows = rows_of(c.in[0]);
  const float *x = c.in[0].f32(), *y = c.in[1].f32();
  float* s = c.out[0].f32();
  c.pool->parallel_for(rows * n, 16384, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; i++) s[i] = x[i] + y[i];
  });
  rms_norm_rows(*c.pool, isa, s, c.in[2].f32(), a.offset, static_cast<float>(a.eps), rows, n, c.out[1].f32());
}

void rms_norm_reference(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  const int64_t n = c.in[0].shape.back();
  for (int64_t r = 0; r < rows_of(c.in[0]); r++) {
    const float* x = c.in[0].f32() + r * n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += static_cast<double>(x[i]) * x[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + a.eps);
    for (int64_t i = 0; i < n; i++)
      c.out[0].f32()[r * n + i] = static_cast<float>(
          x[i] * scale * (c.has(1) ? static_cast<double>(a.offset) + c.in[1].f32()[i] : 1.0));
  }
}

void layer_norm_reference(Call& c) {
  const auto& a = c.attrs<ir::LayerNormAttrs>();
  const int axis = static_cast<int>(a.axis < 0 ? a.axis + c.in[0].shape.rank() : a.axis);
  const int64_t n = c.in[0].shape.elements(axis), rows = c.in[0].shape.elements(0, axis);
  for (int64_t r = 0; r < rows; r++) {
    const float* x = c.in[0].f32() + r * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += x[i];
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + a.eps);
    for (int64_t i = 0; i < n; i++) {
      double v = (x[i] - mean) * scale;
      if (c.has(1)) v *= c.in[1].f32()[i];
      if (c.has(2)) v += c.in[2].f32()[i];
      c.out[0].f32()[r * n + i] = static_cast<float>(v);
    }
  }
}

template <Isa isa>
void add_rows(KernelTable& t, const char* norm, const char* skip) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  t.add({.op = Op::RmsNorm,
         .name = norm,
         .isa = isa,
         .cost = cost,
         .reject = only_f32,
         .run = run_rms_norm<isa>});
  t.add({.op = Op::FusedSkipNorm,
         .name = skip,
         .isa = isa,
         .cost = cost,
         .reject = only_f32,
         .run = run_skip_norm<isa>});
}

}  // namespace

void add_norm_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "rms_norm_avx512", "fused_skip_norm_avx512");
  add_rows<Isa::avx2>(t, "rms_norm_avx2", "fused_skip_norm_avx2");
  add_rows<Isa::neon>(t, "rms_norm_neon", "fused_skip_norm_neon");
  add_rows<Isa::scalar>(t, "rms_norm_plain", "fused_skip_norm_plain");
  t.add({.op = Op::RmsNorm,
         .name = "rms_norm_reference",
         .cost = 1000,
         .reject = only_f32,
         .run = rms_norm_reference});
  t.add({.op = Op::LayerNorm,
         .name = "layer_norm_reference",
         .cost = 1000,
         .reject = only_f32,
         .run = layer_norm_reference});
}

}  // namespace cyb::cpu
