// SPDX-License-Identifier: Apache-2.0
// Kernel rows of f32 convolutions as products.
#include "ops/rows.h"

#include "ops/conv/conv_rows.h"
#include "ops/conv/geometry.h"
#include "ops/conv/plan.h"
#include "ops/conv/weight.h"

namespace cyb::cpu {

using ir::Op;

ConvFinish conv_finish(const Call& c) {
  ConvFinish f;
  f.bias = c.has(2) ? c.in[2].f32() : nullptr;
  if (c.node->op != Op::FusedConv) return f;
  const auto& a = c.attrs<ir::FusedConvAttrs>();
  f.residual = c.has(3) ? c.in[3].f32() : nullptr;
  f.residual_last = a.residual_last;
  f.scale = static_cast<float>(a.scale);
  f.shift = static_cast<float>(a.shift);
  f.act.alpha = static_cast<float>(a.alpha);
  f.act.beta = static_cast<float>(a.beta);
  f.act.activation = [&] {
    switch (a.act) {
      case ir::ConvActivation::none:
        return Activation::identity;
      case ir::ConvActivation::relu:
        return Activation::relu;
      case ir::ConvActivation::leaky_relu:
        return Activation::leaky_relu;
      case ir::ConvActivation::clamp:
        return Activation::clamp;
      case ir::ConvActivation::sigmoid:
        return Activation::sigmoid;
      case ir::ConvActivation::tanh:
        return Activation::tanh;
      case ir::ConvActivation::silu:
        return Activation::silu;
      case ir::ConvActivation::gelu:
        return Activation::gelu_erf;
      case ir::ConvActivation::gelu_tanh:
        return Activation::gelu_tanh;
      case ir::ConvActivation::hard_sigmoid:
        return Activation::hard_sigmoid;
      case ir::ConvActivation::hard_swish:
        return Activation::hard_swish;
      case ir::ConvActivation::mish:
        return Activation::mish;
      case ir::ConvActivation::elu:
        return Activation::elu;
    }
    return Activation::identity;
  }();
  return f;
}

const ir::ConvAttrs& conv_attrs(const ir::Node& node) {
  return node.op == Op::FusedConv ? node.as<ir::FusedConvAttrs>() : node.as<ir::ConvAttrs>();
}

// A residual that broadcasts is left to the definition.
static const char* reject_residual(const Query& q) {
  if (q.node.op != Op::FusedConv || !q.has(3)) return nullptr;
  const ir::Type &x = *q.operands[0], &w = *q.operands[1];
  if (!x.is_concrete() || !w.is_concrete() || !q.operands[3]->is_concrete()) return nullptr;
  Shape y{x.dims[0].number(), w.dims[0].number()};
  std::vector<int64_t> kernel;
  for (size_t i = 2; i < w.dims.size(); i++) kernel.push_back(w.dims[i].number());
  std::vector<ir::Window> windows = windows_of(conv_attrs(q.node), kernel);
  for (size_t i = 0; i < kernel.size(); i++) y.push_back(windows[i].outputs(x.dims[i + 2].number()));
  return y == shape_of(*q.operands[3]) ? nullptr : "the residual broadcasts";
}

const char* reject_conv(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return reject_residual(q);
}

// The copy of a block's inputs is at least one tile wide, whatever the taps.
const char* reject_product(const Query& q) {
  if (const char* why = reject_conv(q)) return why;
  const ir::ConvAttrs& a = conv_attrs(q.node);
  const ir::Dims& w = q.operands[1]->dims;
  double floats = w.size() > 1 && w[1].is_number() ? static_cast<double>(w[1].number()) : 1;
  for (size_t i = 2; i < w.size(); i++) {
    const double k = w[i].is_number() ? static_cast<double>(w[i].number()) : 1;
    const double stride = a.strides.empty() ? 1 : static_cast<double>(a.strides[i - 2]);
    const double reach = k * (a.dilations.empty() ? 1 : static_cast<double>(a.dilations[i - 2])) / stride;
    floats *=
        i + 3 == w.size() && w.size() == 5 ? k : std::min(k, stride) * (reach + (i + 1 == w.size() ? 64 : 1));
  }
  return floats > (1 << 26) ? "it has too many taps" : nullptr;
}

namespace {

struct Prepared {
  ConvPlan plan;
  const float* packed = nullptr;  // null: packed in each run
};

ConvArgs conv_args(const Call& c) {
  const Geometry g = conv_geometry(c);
  ConvArgs a;
  a.batch = g.batch;
  a.groups = g.groups;
  a.group_in = g.group_in();
  a.group_out = g.group_out();
  for (size_t i = 0; i < 3; i++) a.axes[i] = g.axes[i];
  a.finish = conv_finish(c);
  return a;
}

template <Isa isa>
void prepare_product(Call& c) {
  auto p = std::make_shared<Prepared>();
  p->plan.args = conv_args(c);
  const ConvKernels& k = conv_kernels(isa);
  plan_blocks(&p->plan, k.rows, k.vectors, c.pool->threads());
  const ConvArgs& a = p->plan.args;
  if (c.in[1].weight)
    p->packed = conv_weight(c.in[1])->packed(static_cast<uint64_t>(a.rows), packed_floats(a),
                                             [&](const float* w, float* out) { pack_weights(a, w, out); });
  c.prepared = std::move(p);
}

uint64_t product_scratch(const Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  const int64_t floats = own_floats(p.plan.args.blocks.floats) * c.pool->threads();
  return static_cast<uint64_t>(floats + (p.packed ? 0 : packed_floats(p.plan.args))) * 4;
}

template <Isa isa>
void run_product(Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  ConvArgs a = p.plan.args;
  a.w = p.packed;
  if (!a.w) {
    float* packed = reinterpret_cast<float*>(c.scratch) + own_floats(a.blocks.floats) * c.pool->threads();
    pack_weights(a, c.in[1].f32(), packed);
    a.w = packed;
  }
  run_items(c, a, a.blocks.floats, conv_kernels(isa).product);
}

// Depthwise.

const char* reject_depthwise(const Query& q) {
  if (const char* why = reject_product(q)) return why;
  const ir::Dims& w = q.operands[1]->dims;
  return conv_attrs(q.node).groups > 1 && w.size() > 1 && w[1] == ir::Dim(1)
             ? nullptr
             : "groups have several input channels";
}

template <Isa isa>
void prepare_depthwise(Call& c) {
  auto p = std::make_shared<Prepared>();
  p->plan.args = conv_args(c);
  plan_blocks(&p->plan, 1, 4, c.pool->threads(), {.per_channel = true});
  if (c.in[1].weight) p->packed = static_cast<const float*>(plain_values(c.in[1]));
  c.prepared = std::move(p);
}

uint64_t depthwise_scratch(const Call& c) {
  return items_scratch(c, static_cast<const Prepared*>(c.prepared.get())->plan.args.blocks.floats);
}

template <Isa isa>
void run_depthwise(Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  ConvArgs a = p.plan.args;
  a.w = p.packed ? p.packed : c.in[1].f32();
  run_items(c, a, a.blocks.floats, conv_kernels(isa).depthwise);
}

// Transposed.

const char* reject_transposed(const Query& q) {
  if (const char* why = reject_conv(q)) return why;
  const auto& a = q.node.as<ir::ConvTransposeAttrs>();
  const ir::Dims& w = q.operands[1]->dims;
  double floats = w.size() > 1 && w[0].is_number() ? static_cast<double>(w[0].number()) : 1, phases = 1;
  for (size_t i = 2; i < w.size(); i++) {
    const double k = w[i].is_number() ? static_cast<double>(w[i].number()) : 1;
    const double stride = a.strides.empty() ? 1 : static_cast<double>(a.strides[i - 2]);
    const double reach = k * (a.dilations.empty() ? 1 : static_cast<double>(a.dilations[i - 2])) / stride;
    floats *= reach + (i + 1 == w.size() ? 64 : 2);
    phases *= stride;
  }
  return floats > (1 << 26) || phases > (1 << 12) ? "it has too many taps" : nullptr;
}

struct PreparedTransposed {
  ConvTransposedPlan plan;
  const float* packed = nullptr;
};

template <Isa isa>
void prepare_transposed(Call& c) {
  auto p = std::make_shared<PreparedTransposed>();
  const ConvArgs a = conv_args(c);
  const ConvKernels& k = conv_kernels(isa);
  plan_transposed(&p->plan, a, k.rows, k.vectors, c.pool->threads());
  if (c.in[1].weight) {
    // The order of the taps depends on all of these.
    uint64_t key = 2;
    auto mix = [&](int64_t v) { key = (key ^ static_cast<uint64_t>(v)) * 0x100000001b3u; };
    mix(p->plan.args.conv.rows);
    for (const ConvAxis& x : a.axes)
      for (int64_t v : {x.stride, x.dilation, x.begin}) mix(v);
    p->packed =
        conv_weight(c.in[1])->packed(key | uint64_t{1} << 63, packed_transposed_floats(p->plan),
                                     [&](const float* w, float* out) { pack_transposed(p->plan, w, out); });
  }
  c.prepared = std::move(p);
}

uint64_t transposed_scratch(const Call& c) {
  const auto& p = *static_cast<const PreparedTransposed*>(c.prepared.get());
  const int64_t floats = own_floats(p.plan.args.floats()) * c.pool->threads();
  return static_cast<uint64_t>(floats + (p.packed ? 0 : packed_transposed_floats(p.plan))) * 4;
}

template <Isa isa>
void run_transposed(Call& c) {
  const auto& p = *static_cast<const PreparedTransposed*>(c.prepared.get());
  ConvTransposedArgs a = p.plan.args;
  a.conv.x = c.in[0].f32();
  a.conv.y = c.out[0].f32();
  const int64_t floats = own_floats(a.floats());
  float* scratch = reinterpret_cast<float*>(c.scratch);
  a.conv.w = p.packed;
  if (!a.conv.w) {
    float* packed = scratch + floats * c.pool->threads();
    pack_transposed(p.plan, c.in[1].f32(), packed);
    a.conv.w = packed;
  }
  c.pool->parallel_for(a.conv.items(), 1, [&](int64_t begin, int64_t end, int thread) {
    conv_kernels(isa).transposed(a, begin, end, scratch + thread * floats);
  });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* product, const char* depthwise, const char* transposed) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::ConvTranspose1d, Op::ConvTranspose2d, Op::ConvTranspose3d})
    t.add({.op = op,
           .name = transposed,
           .isa = isa,
           .cost = cost,
           .encoded = 2,
           .reject = reject_transposed,
           .scratch_bytes = transposed_scratch,
           .prepare = prepare_transposed<isa>,
           .run = run_transposed<isa>});
  for (Op op : {Op::Conv1d, Op::Conv2d, Op::Conv3d, Op::FusedConv}) {
    t.add({.op = op,
           .name = depthwise,
           .isa = isa,
           .cost = cost,
           .encoded = 2,
           .reject = reject_depthwise,
           .scratch_bytes = depthwise_scratch,
           .prepare = prepare_depthwise<isa>,
           .run = run_depthwise<isa>});
    t.add({.op = op,
           .name = product,
           .isa = isa,
           .cost = cost + 5,
           .encoded = 2,
           .reject = reject_product,
           .scratch_bytes = product_scratch,
           .prepare = prepare_product<isa>,
           .run = run_product<isa>});
  }
}

}  // namespace

void add_conv_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "conv_avx512", "conv_depthwise_avx512", "conv_transposed_avx512");
  add_rows<Isa::avx2>(t, "conv_avx2", "conv_depthwise_avx2", "conv_transposed_avx2");
  add_rows<Isa::neon>(t, "conv_neon", "conv_depthwise_neon", "conv_transposed_neon");
  add_rows<Isa::scalar>(t, "conv_plain", "conv_depthwise_plain", "conv_transposed_plain");
  add_conv_winograd(t);
  add_conv_pointwise(t);
  add_conv_nchw16c(t);
  add_conv_reference(t);
}

}  // namespace cyb::cpu
