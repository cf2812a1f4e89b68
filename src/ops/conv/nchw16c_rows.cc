// SPDX-License-Identifier: Apache-2.0
// Kernel rows of convolutions from or to channels in blocks.
#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/nchw16c_plan.h"
#include "ops/conv/weight.h"

namespace cyb::cpu {

using ir::Op;

void conv_layouts(Call& c) {
  Arg& y = c.out[0];
  if (!c.has(3)) return;
  if (c.in[3].layout == Layout::plain || y.layout == Layout::plain) c.in[3].layout = y.layout = Layout::plain;
}

namespace {

// Chosen only where a value is in blocks.
const char* reject(const Query& q) {
  if (!q.nchw16c) return "no value has its channels in blocks";
  // As for the product, beside which this changes no bit.
  if (const char* why = reject_product(q)) return why;
  const ir::ConvAttrs& a = conv_attrs(q.node);
  const ir::Type &x = *q.operands[0], &w = *q.operands[1];
  if (a.groups != 1 || !q.weight(1)) return "groups, or w is no weight of the file";
  if (w.dims.size() != 4 || !w.is_concrete() || !x.is_concrete()) return "not of two axes";
  std::vector<ir::Window> windows = windows_of(a, {w.dims[2].number(), w.dims[3].number()});
  for (size_t i = 0; i < 2; i++)
    if (windows[i].outputs(x.dims[i + 2].number()) < 1 || windows[i].begin < 0) return "crops, or nothing";
  return nullptr;
}

template <Isa isa>
void prepare(Call& c) {
  auto p = std::make_shared<Nchw16cPlan>();
  const Geometry g = conv_geometry(c);
  Nchw16cArgs& a = p->args;
  a.x_blocked = c.in[0].layout == Layout::nchw16c;
  a.y_blocked = c.out[0].layout == Layout::nchw16c;
  a.batch = g.batch;
  a.in = g.in_channels;
  a.out = g.out_channels;
  for (size_t i = 0; i < 3; i++) a.axes[i] = g.axes[i];
  nchw16c_plan(p.get(), conv_kernels(isa).nchw16c_vectors, c.pool->threads());
  a.finish = conv_finish(c);
  const uint64_t key = (uint64_t{3} << 32) + static_cast<uint64_t>(a.vectors);
  a.w = conv_weight(c.in[1])->packed(key, a.groups() * 16 * a.k, [&](const float* w, float* to) {
    pack_lanes(a.out, a.k, a.vectors, w, to);
  });
  c.prepared = std::move(p);
}

const Nchw16cArgs& args(const Call& c) { return static_cast<const Nchw16cPlan*>(c.prepared.get())->args; }

uint64_t scratch(const Call& c) { return items_scratch(c, args(c).floats); }

template <Isa isa>
void run(Call& c) {
  run_items(c, args(c), args(c).floats, conv_kernels(isa).nchw16c);
}

template <Isa isa>
void add_rows(KernelTable& t, const char* name) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Conv2d, Op::FusedConv})
    t.add({.op = op,
           .name = name,
           .isa = isa,
           .cost = cost + 4,
           .encoded = 2,
           .reject = reject,
           .scratch_bytes = scratch,
           .prepare = prepare<isa>,
           .run = run<isa>,
           .layouts = conv_layouts});
}

}  // namespace

void add_conv_nchw16c(KernelTable& t) {
  add_rows<Isa::avx512>(t, "conv_nchw16c_avx512");
  add_rows<Isa::avx2>(t, "conv_nchw16c_avx2");
  add_rows<Isa::neon>(t, "conv_nchw16c_neon");
  add_rows<Isa::scalar>(t, "conv_nchw16c_plain");
}

}  // namespace cyb::cpu
