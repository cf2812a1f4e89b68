// SPDX-License-Identifier: Apache-2.0
// Kernel rows of normalizations over channels of f32.
#include <cmath>

#include "ir/ops/common.h"
#include "ops/norm/norm.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

const char* only_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

int64_t channels_of(const Call& c) { return c.in[0].shape.rank() > 1 ? c.in[0].shape[1] : 1; }

uint64_t scratch(const Call& c) { return static_cast<uint64_t>(channels_of(c)) * 4; }

template <Isa isa>
void run_batch_norm(Call& c) {
  const int64_t channels = channels_of(c), n = c.in[0].elements();
  if (n == 0) return;
  ChannelNormArgs a;
  a.channels = channels;
  a.spatial = c.in[0].shape.rank() > 1 ? c.in[0].shape.elements(2) : n;
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  a.mean = c.in[3].f32();
  a.bias = c.in[2].f32();
  float* scale = reinterpret_cast<float*>(c.scratch);
  const double eps = c.attrs<ir::EpsAttrs>().eps;
  for (int64_t k = 0; k < channels; k++)
    scale[k] = static_cast<float>(c.in[1].f32()[k] / std::sqrt(c.in[4].f32()[k] + eps));
  a.scale = scale;
  // Rows are the positions of a channel, or the channels of a batch row where there is but one position.
  const int64_t rows = a.spatial == 1 ? n / channels : n / a.spatial;
  c.pool->parallel_for(rows, 1 + 16384 / (n / rows + 1), [&](int64_t begin, int64_t end, int) {
    norm_kernels(isa).channel_norm(a, begin, end);
  });
}

template <Isa isa>
void run_group_norm(Call& c) {
  const Shape& shape = c.in[0].shape;
  if (c.in[0].elements() == 0) return;
  GroupNormArgs a;
  const bool instance = c.node->op == Op::InstanceNorm;
  a.batch = shape[0];
  a.channels = shape[1];
  a.groups = instance ? shape[1] : c.attrs<ir::GroupNormAttrs>().groups;
  a.spatial = shape.elements(2);
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  a.eps = static_cast<float>(instance ? c.attrs<ir::EpsAttrs>().eps : c.attrs<ir::GroupNormAttrs>().eps);
  a.weight = c.has(1) ? c.in[1].f32() : nullptr;
  a.bias = c.has(2) ? c.in[2].f32() : nullptr;
  c.pool->parallel_for(a.batch * a.groups, 1 + 16384 / (a.channels / a.groups * a.spatial + 1),
                       [&](int64_t begin, int64_t end, int) { norm_kernels(isa).group_norm(a, begin, end); });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* batch, const char* group) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  t.add({.op = Op::BatchNorm,
         .name = batch,
         .isa = isa,
         .cost = cost,
         .reject = only_f32,
         .scratch_bytes = scratch,
         .run = run_batch_norm<isa>});
  for (Op op : {Op::GroupNorm, Op::InstanceNorm})
    t.add(
        {.op = op, .name = group, .isa = isa, .cost = cost, .reject = only_f32, .run = run_group_norm<isa>});
}

}  // namespace

void add_fast_channel_norm_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "batch_norm_avx512", "group_norm_avx512");
  add_rows<Isa::avx2>(t, "batch_norm_avx2", "group_norm_avx2");
  add_rows<Isa::neon>(t, "batch_norm_neon", "group_norm_neon");
  add_rows<Isa::scalar>(t, "batch_norm_plain", "group_norm_plain");
}

}  // namespace cyb::cpu
