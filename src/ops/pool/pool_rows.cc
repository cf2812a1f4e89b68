// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 pooling.
#include <algorithm>

#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/plan.h"
#include "ops/pool/pool.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

const char* reject(const Query& q) {
  const auto& a = q.node.as<ir::PoolAttrs>();
  if (q.dtype(0) != DType::f32) return "not f32";
  if (a.kind == ir::PoolKind::lp) return "an Lp norm";
  if (q.node.results.size() > 1) return "indices are wanted";
  double floats = 1;
  for (size_t i = 0; i < a.kernel.size(); i++) {
    const double stride = a.strides.empty() ? 1 : static_cast<double>(a.strides[i]);
    const double k = static_cast<double>(a.kernel[i]),
                 reach = k * (a.dilations.empty() ? 1 : static_cast<double>(a.dilations[i])) / stride;
    floats *= std::min(k, stride) * (reach + (i + 1 == a.kernel.size() ? 64 : 1));
  }
  return floats > (1 << 24) ? "it has too many taps" : nullptr;
}

// Where there are as many rows, each thread has some of its own.
constexpr int64_t kBlockRows = 8;

struct Prepared {
  ConvPlan plan;
  PoolArgs args;
  std::vector<float> counts[3];
};

void prepare(Call& c) {
  auto p = std::make_shared<Prepared>();
  const Geometry g = pool_geometry(c);
  const auto& attrs = c.attrs<ir::PoolAttrs>();
  ConvArgs& a = p->plan.args;
  a.batch = g.batch;
  a.groups = g.in_channels;
  for (size_t i = 0; i < 3; i++) a.axes[i] = g.axes[i];
  const int threads = c.pool->threads();
  const int64_t row_blocks = std::clamp<int64_t>(a.axes[1].out / kBlockRows, 1, threads);
  plan_blocks(&p->plan, 1, 4, threads, {.keep_rows = true, .per_channel = true, .row_blocks = row_blocks});
  PoolArgs& args = p->args;
  args.average = attrs.kind == ir::PoolKind::average;
  args.batch = g.batch;
  args.channels = g.in_channels;
  args.blocked = c.in[0].layout == Layout::nchw16c;
  args.taps = a.k;
  args.blocks = a.blocks;
  std::vector<ir::Window> windows = windows_of(attrs);
  for (size_t i = 0; i < 3; i++) {
    args.axes[i] = a.axes[i];
    const ConvAxis& x = a.axes[i];
    // Padding counts where asked for, the overshoot of ceil never.
    int64_t pad_end = 0;
    if (i + windows.size() >= 3) {
      ir::Window& w = windows[i + windows.size() - 3];
      w.outputs(x.in);
      pad_end = w.end;
    }
    const int64_t low = attrs.count_pad ? -x.begin : 0, high = attrs.count_pad ? x.in + pad_end : x.in;
    for (int64_t o = 0; o < x.out; o++) {
      int64_t count = 0;
      for (int64_t k = 0; k < x.kernel; k++) {
        const int64_t at = o * x.stride + k * x.dilation - x.begin;
        count += at >= low && at < high;
      }
      p->counts[i].push_back(static_cast<float>(count));
    }
    args.counts[i] = p->counts[i].data();
  }
  c.prepared = std::move(p);
}

// The copy, its rows after each step of a maximum, and the results.
int64_t thread_floats(const PoolArgs& a) {
  if (a.blocked) {
    const ConvAxis& w = a.axes[2];
    return 16 * ((w.out - 1) * w.stride + (w.kernel - 1) * w.dilation + 1);
  }
  const int64_t rows = a.blocks.rows * a.blocks.pitch + 64;
  return (a.blocks.floats + (a.blocks.phases_x + 2) * rows + 64) / 16 * 16;
}

const PoolArgs& args(const Call& c) { return static_cast<const Prepared*>(c.prepared.get())->args; }

uint64_t scratch(const Call& c) { return items_scratch(c, thread_floats(args(c))); }

template <Isa isa>
void run(Call& c) {
  run_items(c, args(c), thread_floats(args(c)), pool_kernels(isa).pool);
}

// Maxima of either layout, averages of whole planes from blocks.
void layouts(Call& c) {
  Arg &x = c.in[0], &y = c.out[0];
  const auto& attrs = c.attrs<ir::PoolAttrs>();
  bool takes = x.layout == Layout::nchw16c;
  if (attrs.kind == ir::PoolKind::max) {
    takes = takes && y.layout == Layout::nchw16c;
  } else {
    for (const Axis3& axis : pool_geometry(c).axes)
      takes = takes && axis.out == 1 && axis.kernel == axis.in && axis.begin == 0 && axis.dilation == 1;
  }
  if (!takes) x.layout = y.layout = Layout::plain;
}

template <Isa isa>
void add_row(KernelTable& t, const char* name) {
  t.add({.op = Op::Pool,
         .name = name,
         .isa = isa,
         .cost = isa == Isa::scalar ? 500
                 : isa == Isa::avx2 ? 20
                                    : 10,
         .reject = reject,
         .scratch_bytes = scratch,
         .prepare = prepare,
         .run = run<isa>,
         .layouts = layouts});
}

}  // namespace

void add_pool_kernel_rows(KernelTable& t) {
  add_row<Isa::avx512>(t, "pool_avx512");
  add_row<Isa::avx2>(t, "pool_avx2");
  add_row<Isa::neon>(t, "pool_neon");
  add_row<Isa::scalar>(t, "pool_plain");
}

}  // namespace cyb::cpu
