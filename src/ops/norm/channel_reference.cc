// SPDX-License-Identifier: Apache-2.0
// Normalizations over channels by their definition, in f64.
#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"
#include "ir/ops/conv.h"
#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

void run_batch_norm(Call& c) {
  const Shape& shape = c.in[0].shape;
  const double eps = c.attrs<ir::EpsAttrs>().eps;
  const auto x = reals(c.in[0]), scale = reals(c.in[1]), bias = reals(c.in[2]), mean = reals(c.in[3]),
             variance = reals(c.in[4]);
  const int64_t channels = shape.rank() > 1 ? shape[1] : 1;
  const int64_t spatial = shape.rank() > 1 ? shape.elements(2) : shape.elements();
  fill(c.out[0], [&](int64_t i) {
    const auto k = static_cast<size_t>(i / std::max<int64_t>(spatial, 1) % channels);
    return (x[static_cast<size_t>(i)] - mean[k]) / std::sqrt(variance[k] + eps) * scale[k] + bias[k];
  });
}

// Groups of channels of each batch row; one channel a group for InstanceNorm.
void run_group_norm(Call& c) {
  const Shape& shape = c.in[0].shape;
  const bool instance = c.node->op == Op::InstanceNorm;
  const int64_t channels = shape[1], groups = instance ? channels : c.attrs<ir::GroupNormAttrs>().groups;
  const double eps = instance ? c.attrs<ir::EpsAttrs>().eps : c.attrs<ir::GroupNormAttrs>().eps;
  const int64_t spatial = shape.elements(2), n = groups ? channels / groups * spatial : 0;
  auto x = reals(c.in[0]);
  const auto scale = reals_of(c, 1), bias = reals_of(c, 2);
  for (int64_t g = 0; n && g < shape[0] * groups; g++) {
    double* v = x.data() + g * n;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) sum += v[i];
    const double mean = sum / static_cast<double>(n);
    for (int64_t i = 0; i < n; i++) squares += (v[i] - mean) * (v[i] - mean);
    const double root = std::sqrt(squares / static_cast<double>(n) + eps);
    for (int64_t i = 0; i < n; i++) {
      const auto k = static_cast<size_t>((g % groups) * (channels / groups) + i / spatial);
      v[i] = (v[i] - mean) / root;
      if (!scale.empty()) v[i] *= scale[k];
      if (!bias.empty()) v[i] += bias[k];
    }
  }
  store(c.out[0], x);
}

void run_lrn(Call& c) {
  const Shape& shape = c.in[0].shape;
  const auto& a = c.attrs<ir::LrnAttrs>();
  const auto x = reals(c.in[0]);
  const int64_t channels = shape[1], spatial = shape.elements(2);
  const int64_t before = (a.size - 1) / 2, after = a.size - 1 - before;
  fill(c.out[0], [&](int64_t i) {
    const int64_t k = i / spatial % channels, column = i - k * spatial;
    double squares = 0;
    for (int64_t j = std::max<int64_t>(0, k - before);
         j <= std::min(channels - 1, k + std::min(after, channels)); j++) {
      const double v = x[static_cast<size_t>(column + j * spatial)];
      squares += v * v;
    }
    return x[static_cast<size_t>(i)] /
           std::pow(a.bias + a.alpha / static_cast<double>(a.size) * squares, a.beta);
  });
}

}  // namespace

void add_channel_norm_rows(KernelTable& t) {
  t.add({.op = Op::BatchNorm, .name = "batch_norm_reference", .cost = 1000, .run = run_batch_norm});
  for (Op op : {Op::GroupNorm, Op::InstanceNorm})
    t.add({.op = op, .name = "group_norm_reference", .cost = 1000, .run = run_group_norm});
  t.add({.op = Op::Lrn, .name = "lrn_reference", .cost = 1000, .run = run_lrn});
}

}  // namespace cyb::cpu
