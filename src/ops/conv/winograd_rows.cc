// SPDX-License-Identifier: Apache-2.0
// Kernel rows of 3 × 3 convolutions by Winograd's method.
#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/weight.h"
#include "ops/conv/winograd.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// T = 4 or 2, whichever is estimated to be faster; 0 where the plain product is. Never asks the processor or
// the number of threads, so that all give the same bits.
int best_tile(WinogradArgs a) {
  int best = 0;
  double least = product_cost(a) * 0.85;
  for (int tile : {4, 2}) {
    a.tile = tile;
    a.vectors = 1;
    if (const double cost = winograd_cost(a); cost < least) {
      least = cost;
      best = tile;
    }
  }
  return best;
}

bool is(const std::vector<int64_t>& list, int64_t value) {
  for (int64_t v : list)
    if (v != value) return false;
  return true;
}

const char* reject(const Query& q) {
  if (q.precision.exact) return "exact keeps to one order of sums";
  if (const char* why = reject_conv(q)) return why;
  const ir::ConvAttrs& a = conv_attrs(q.node);
  const ir::Dims &x = q.operands[0]->dims, &w = q.operands[1]->dims;
  if (w.size() != 4 || w[2] != ir::Dim(3) || w[3] != ir::Dim(3)) return "the kernel is not 3 x 3";
  if (!is(a.strides, 1) || !is(a.dilations, 1) || a.groups != 1) return "not of stride 1";
  if (!q.weight(1)) return "w is no weight of the file";
  if (!q.operands[0]->is_concrete() || !q.operands[1]->is_concrete()) return nullptr;
  std::vector<ir::Window> windows = windows_of(a, {3, 3});
  WinogradArgs args;
  args.in = w[1].number();
  args.out = w[0].number();
  args.out_height = windows[0].outputs(x[2].number());
  args.out_width = windows[1].outputs(x[3].number());
  return best_tile(args) ? nullptr : "so few tiles or channels are faster without";
}

struct Prepared {
  WinogradArgs args;
};

template <Isa isa>
void prepare(Call& c) {
  auto p = std::make_shared<Prepared>();
  const Geometry g = conv_geometry(c);
  WinogradArgs& a = p->args;
  a.batch = g.batch;
  a.in = g.in_channels;
  a.out = g.out_channels;
  a.height = g.axes[1].in;
  a.width = g.axes[2].in;
  a.out_height = g.axes[1].out;
  a.out_width = g.axes[2].out;
  a.pad_y = g.axes[1].begin;
  a.pad_x = g.axes[2].begin;
  a.x_blocked = c.in[0].layout == Layout::nchw16c;
  a.y_blocked = c.out[0].layout == Layout::nchw16c;
  a.tile = best_tile(a);
  winograd_plan(&a, conv_kernels(isa).winograd_vectors, c.pool->threads());
  a.finish = conv_finish(c);
  const uint64_t key = (uint64_t{1} << 32) + static_cast<uint64_t>(a.tile * 16 + a.vectors);
  a.u = conv_weight(c.in[1])->packed(key, winograd_floats(a),
                                     [&](const float* w, float* out) { winograd_pack(a, w, out); });
  c.prepared = std::move(p);
}

const WinogradArgs& args(const Call& c) { return static_cast<const Prepared*>(c.prepared.get())->args; }

uint64_t scratch(const Call& c) { return items_scratch(c, args(c).floats()); }

template <Isa isa>
void run(Call& c) {
  run_items(c, args(c), args(c).floats(), conv_kernels(isa).winograd);
}

template <Isa isa>
void add_rows(KernelTable& t, const char* name) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Conv2d, Op::FusedConv})
    t.add({.op = op,
           .name = name,
           .isa = isa,
           .cost = cost + 2,
           .encoded = 2,
           .reject = reject,
           .scratch_bytes = scratch,
           .prepare = prepare<isa>,
           .run = run<isa>,
           .layouts = conv_layouts});
}

}  // namespace

void add_conv_winograd(KernelTable& t) {
  add_rows<Isa::avx512>(t, "conv_winograd_avx512");
  add_rows<Isa::avx2>(t, "conv_winograd_avx2");
  add_rows<Isa::neon>(t, "conv_winograd_neon");
  add_rows<Isa::scalar>(t, "conv_winograd_plain");
}

}  // namespace cyb::cpu
