// SPDX-License-Identifier: Apache-2.0
// Kernel rows of convolutions whose windows do not overlap, of few or strided positions.
#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/nchw16c_plan.h"
#include "ops/conv/weight.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Where vectors of positions would leave lanes empty, or positions must be picked out first. Both kernels
// give the same bits, so this asks for speed only.
const char* reject(const Query& q) {
  if (const char* why = reject_conv(q)) return why;
  const ir::ConvAttrs& a = conv_attrs(q.node);
  const ir::Type &x = *q.operands[0], &w = *q.operands[1];
  if (!w.is_concrete() || a.groups != 1 || !q.weight(1)) return "groups, or w is no weight of the file";
  for (int64_t p : a.pads)
    if (p != 0) return "with pads";
  const size_t axes = w.dims.size() - 2;
  bool point = true, patches = true, strided = false;
  int64_t taps = w.dims[1].number();
  for (size_t i = 0; i < axes; i++) {
    const int64_t kernel = w.dims[i + 2].number(), stride = a.strides.empty() ? 1 : a.strides[i];
    point = point && kernel == 1;
    patches = patches && kernel == stride && (a.dilations.empty() || a.dilations[i] == 1);
    strided = strided || stride != 1;
    taps *= kernel;
  }
  if (!point && !patches) return "windows overlap";
  if (!point && a.auto_pad != ir::AutoPad::none && a.auto_pad != ir::AutoPad::valid) return "with pads";
  const int64_t out = w.dims[0].number();
  if (taps < 32 || out < 64 || out % 16 != 0) return "few channels";
  if (!x.is_concrete()) return nullptr;
  if (strided && point) return nullptr;
  // Other kernels fill their vectors with consecutive positions: those of a row where there are strides, else
  // all.
  int64_t run = 1;
  for (size_t i = strided ? axes - 1 : 0; i < axes; i++)
    run *= ceil_div<int64_t>(x.dims[i + 2].number(), a.strides.empty() ? 1 : a.strides[i]);
  const int64_t lanes = round_up<int64_t>(run, 16);
  return run < 400 && lanes * 50 >= run * 53 ? nullptr : "vectors of positions are full";
}

struct Prepared {
  PointwiseArgs args;
  std::vector<int64_t> offsets;
};

template <Isa isa>
void prepare(Call& c) {
  auto p = std::make_shared<Prepared>();
  const Geometry g = conv_geometry(c);
  PointwiseArgs& a = p->args;
  a.batch = g.batch;
  a.taps = g.in_channels * g.taps();
  a.out = g.out_channels;
  const int64_t row = g.axes[2].in, plane = g.axes[1].in * row;
  a.image = g.in_channels * g.in_positions();
  if (g.out_positions() == g.in_positions()) {
    a.out_width = g.in_positions();
  } else {
    a.out_depth = g.axes[0].out;
    a.out_height = g.axes[1].out;
    a.out_width = g.axes[2].out;
    a.step = g.axes[2].stride;
    a.row_step = g.axes[1].stride * row;
    a.depth_step = g.axes[0].stride * plane;
  }
  for (int64_t channel = 0; channel < g.in_channels; channel++)
    for (int64_t z = 0; z < g.axes[0].kernel; z++)
      for (int64_t i = 0; i < g.axes[1].kernel; i++)
        for (int64_t j = 0; j < g.axes[2].kernel; j++)
          p->offsets.push_back(channel * g.in_positions() + z * plane + i * row + j);
  a.offsets = p->offsets.data();
  a.copied = g.taps() == 1;
  const int64_t positions = g.out_positions();
  const int vectors = conv_kernels(isa).pointwise_vectors;
  const int64_t groups = ceil_div<int64_t>(a.out, 16), blocks = ceil_div<int64_t>(groups, vectors);
  a.chunks = std::max<int64_t>(1, ceil_div(positions, PointwiseArgs::kMostPositions));
  const int64_t wanted = c.pool->threads() == 1 ? 1 : 4 * int64_t{c.pool->threads()};
  a.splits = std::clamp<int64_t>(ceil_div(wanted, std::max<int64_t>(1, a.batch * a.chunks)), 1, blocks);
  a.finish = conv_finish(c);
  a.w = conv_weight(c.in[1])->packed(
      (uint64_t{2} << 32) + static_cast<uint64_t>(vectors), groups * 16 * a.taps,
      [&](const float* w, float* to) { pack_lanes(a.out, a.taps, vectors, w, to); });
  c.prepared = std::move(p);
}

const PointwiseArgs& args(const Call& c) { return static_cast<const Prepared*>(c.prepared.get())->args; }

template <Isa isa>
uint64_t scratch(const Call& c) {
  return items_scratch(c, conv_kernels(isa).pointwise_floats(args(c)));
}

template <Isa isa>
void run(Call& c) {
  run_items(c, args(c), conv_kernels(isa).pointwise_floats(args(c)), conv_kernels(isa).pointwise);
}

template <Isa isa>
void add_rows(KernelTable& t, const char* name) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Conv1d, Op::Conv2d, Op::Conv3d, Op::FusedConv})
    t.add({.op = op,
           .name = name,
           .isa = isa,
           .cost = cost + 1,
           .encoded = 2,
           .reject = reject,
           .scratch_bytes = scratch<isa>,
           .prepare = prepare<isa>,
           .run = run<isa>});
}

}  // namespace

void add_conv_pointwise(KernelTable& t) {
  add_rows<Isa::avx512>(t, "conv_pointwise_avx512");
  add_rows<Isa::avx2>(t, "conv_pointwise_avx2");
  add_rows<Isa::neon>(t, "conv_pointwise_neon");
  add_rows<Isa::scalar>(t, "conv_pointwise_plain");
}

}  // namespace cyb::cpu
