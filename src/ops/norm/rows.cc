// SPDX-License-Identifier: Apache-2.0
// Kernel rows of norms.
#include "ops/rows.h"

#include <cmath>

#include "ir/ops/common.h"
#include "ops/common/reals.h"
#include "ops/norm/norm.h"

namespace cyb::cpu {

using ir::Op;

namespace {

int64_t rows_of(const Arg& x) { return x.shape.elements(0, x.shape.rank() - 1); }

const char* only_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

int64_t grain(int64_t n) { return 1 + 16384 / (n + 1); }

template <Isa isa>
void run_rms_norm(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  rms_norm_rows(*c.pool, isa, c.in[0].f32(), c.has(1) ? c.in[1].f32() : nullptr, a.offset,
                static_cast<float>(a.eps), rows_of(c.in[0]), c.in[0].shape.back(), c.out[0].f32());
}

template <Isa isa>
void run_layer_norm(Call& c) {
  const auto& attrs = c.attrs<ir::LayerNormAttrs>();
  NormArgs a;
  a.n = c.in[0].shape.back();
  a.rows = rows_of(c.in[0]);
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  a.x_stride = a.y_stride = a.n;
  a.eps = static_cast<float>(attrs.eps);
  a.weight = c.has(1) ? c.in[1].f32() : nullptr;
  a.bias = c.has(2) ? c.in[2].f32() : nullptr;
  c.pool->parallel_for(a.rows, grain(a.n),
                       [&](int64_t b, int64_t e, int) { norm_kernels(isa).layer_norm(a, b, e); });
}

template <Isa isa>
void run_skip_norm(Call& c) {
  const auto& attrs = c.attrs<ir::RmsNormAttrs>();
  NormArgs a;
  a.n = c.in[0].shape.back();
  a.rows = rows_of(c.in[0]);
  a.x = c.in[0].f32();
  a.skip = c.in[1].f32();
  a.sum = c.out[0].f32();
  a.y = c.out[1].f32();
  a.x_stride = a.y_stride = a.skip_stride = a.sum_stride = a.n;
  a.eps = static_cast<float>(attrs.eps);
  a.weight = c.in[2].f32();
  a.offset = static_cast<float>(attrs.offset);
  c.pool->parallel_for(a.rows, grain(a.n),
                       [&](int64_t b, int64_t e, int) { norm_kernels(isa).rms_norm(a, b, e); });
}

void skip_norm_reference(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  const int64_t n = c.in[0].shape.back();
  for (int64_t r = 0; r < rows_of(c.in[0]); r++) {
    double squares = 0;
    float* sum = c.out[0].f32() + r * n;
    for (int64_t i = 0; i < n; i++) {
      sum[i] = c.in[0].f32()[r * n + i] + c.in[1].f32()[r * n + i];
      squares += static_cast<double>(sum[i]) * sum[i];
    }
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + a.eps);
    for (int64_t i = 0; i < n; i++)
      c.out[1].f32()[r * n + i] =
          static_cast<float>(sum[i] * scale * (static_cast<double>(a.offset) + c.in[2].f32()[i]));
  }
}

// The weight's shape is the end of x's, so its elements repeat.
double repeated(const std::vector<double>& w, int64_t i) { return w[static_cast<size_t>(i) % w.size()]; }

void rms_norm_reference(Call& c) {
  const auto& a = c.attrs<ir::RmsNormAttrs>();
  const int64_t n = c.in[0].shape.back();
  auto x = reals(c.in[0]);
  const auto weight = reals_of(c, 1);
  for (int64_t r = 0; n && r < rows_of(c.in[0]); r++) {
    double* row = x.data() + r * n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += row[i] * row[i];
    const double scale = 1 / std::sqrt(sum / static_cast<double>(n) + a.eps);
    for (int64_t i = 0; i < n; i++)
      row[i] *= scale * (c.has(1) ? static_cast<double>(a.offset) + repeated(weight, r * n + i) : 1.0);
  }
  store(c.out[0], x);
}

void layer_norm_reference(Call& c) {
  const auto& a = c.attrs<ir::LayerNormAttrs>();
  const int axis = axis_of(a.axis, c.in[0].shape.rank());
  const int64_t n = c.in[0].shape.elements(axis), rows = c.in[0].shape.elements(0, axis);
  auto x = reals(c.in[0]);
  const auto weight = reals_of(c, 1), bias = reals_of(c, 2);
  for (int64_t r = 0; n && r < rows; r++) {
    double* row = x.data() + r * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += row[i];
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; i++) squares += (row[i] - mean) * (row[i] - mean);
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + a.eps);
    for (int64_t i = 0; i < n; i++) {
      row[i] = (row[i] - mean) * scale;
      if (c.has(1)) row[i] *= repeated(weight, r * n + i);
      if (c.has(2)) row[i] += repeated(bias, r * n + i);
    }
  }
  store(c.out[0], x);
}

// Kernels take one weight for all rows.
const char* reject_norm(const Query& q) {
  if (const char* why = only_f32(q)) return why;
  for (size_t i = 1; i < q.operands.size(); i++)
    if (q.has(i) && q.operands[i]->known_rank && q.operands[i]->rank() != 1) return "the weight is no vector";
  return nullptr;
}

const char* reject_layer(const Query& q) {
  if (const char* why = reject_norm(q)) return why;
  const int64_t axis = q.node.as<ir::LayerNormAttrs>().axis;
  return axis == -1 || axis == q.operands[0]->rank() - 1 ? nullptr : "more than the last axis";
}

template <Isa isa>
void add_rows(KernelTable& t, const char* norm, const char* skip, const char* layer) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  t.add({.op = Op::RmsNorm,
         .name = norm,
         .isa = isa,
         .cost = cost,
         .reject = reject_norm,
         .run = run_rms_norm<isa>});
  t.add({.op = Op::FusedSkipNorm,
         .name = skip,
         .isa = isa,
         .cost = cost,
         .reject = only_f32,
         .run = run_skip_norm<isa>});
  t.add({.op = Op::LayerNorm,
         .name = layer,
         .isa = isa,
         .cost = cost,
         .reject = reject_layer,
         .run = run_layer_norm<isa>});
}

}  // namespace

void rms_norm_rows(ThreadPool& pool, Isa isa, const float* x, const float* w, int64_t offset, float eps,
                   int64_t rows, int64_t n, float* y) {
  NormArgs a;
  a.n = n;
  a.rows = rows;
  a.x = x;
  a.y = y;
  a.x_stride = a.y_stride = n;
  a.eps = eps;
  a.weight = w;
  a.offset = static_cast<float>(offset);
  pool.parallel_for(rows, grain(n), [&](int64_t b, int64_t e, int) { norm_kernels(isa).rms_norm(a, b, e); });
}

void add_norm_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "rms_norm_avx512", "fused_skip_norm_avx512", "layer_norm_avx512");
  add_rows<Isa::avx2>(t, "rms_norm_avx2", "fused_skip_norm_avx2", "layer_norm_avx2");
  add_rows<Isa::neon>(t, "rms_norm_neon", "fused_skip_norm_neon", "layer_norm_neon");
  add_rows<Isa::scalar>(t, "rms_norm_plain", "fused_skip_norm_plain", "layer_norm_plain");
  t.add({.op = Op::RmsNorm, .name = "rms_norm_reference", .cost = 1000, .run = rms_norm_reference});
  t.add({.op = Op::FusedSkipNorm,
         .name = "fused_skip_norm_reference",
         .cost = 1000,
         .reject = only_f32,
         .run = skip_norm_reference});
  t.add({.op = Op::LayerNorm, .name = "layer_norm_reference", .cost = 1000, .run = layer_norm_reference});
}

}  // namespace cyb::cpu
