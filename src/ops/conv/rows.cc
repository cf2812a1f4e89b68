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

namespace {

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

struct Prepared {
  ConvPlan plan;
  const float* packed = nullptr;  // null: packed in each run
};

template <Isa isa>
void prepare_product(Call& c) {
  auto p = std::make_shared<Prepared>();
  const Geometry g = conv_geometry(c);
  ConvArgs& a = p->plan.args;
  a.batch = g.batch;
  a.groups = g.groups;
  a.group_in = g.group_in();
  a.group_out = g.group_out();
  for (size_t i = 0; i < 3; i++) a.axes[i] = g.axes[i];
  const ConvKernels& k = conv_kernels(isa);
  plan_blocks(&p->plan, k.rows, k.vectors, c.pool->threads());
  a.finish = conv_finish(c);
  if (c.in[1].weight)
    p->packed = conv_weight(c.in[1])->packed(static_cast<uint64_t>(a.rows), packed_floats(a),
                                             [&](const float* w, float* out) { pack_weights(a, w, out); });
  c.prepared = std::move(p);
}

uint64_t product_scratch(const Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  const int64_t floats = p.plan.args.blocks.floats;
  return static_cast<uint64_t>((floats + 15) / 16 * 16 * c.pool->threads() +
                               (p.packed ? 0 : packed_floats(p.plan.args))) *
         4;
}

template <Isa isa>
void run_product(Call& c) {
  const auto& p = *static_cast<const Prepared*>(c.prepared.get());
  ConvArgs a = p.plan.args;
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  const int64_t floats = (a.blocks.floats + 15) / 16 * 16;
  float* copies = reinterpret_cast<float*>(c.scratch);
  a.w = p.packed;
  if (!a.w) {
    float* packed = copies + floats * c.pool->threads();
    pack_weights(a, c.in[1].f32(), packed);
    a.w = packed;
  }
  // What lies behind a copy is read but does not count; it should be no slow number.
  c.pool->parallel_for(a.items(), 1, [&](int64_t begin, int64_t end, int thread) {
    conv_kernels(isa).product(a, begin, end, copies + thread * floats);
  });
}

template <Isa isa>
void add_rows(KernelTable& t, const char* product) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op : {Op::Conv1d, Op::Conv2d, Op::Conv3d, Op::FusedConv})
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

}  // namespace

void add_conv_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "conv_avx512");
  add_rows<Isa::avx2>(t, "conv_avx2");
  add_rows<Isa::neon>(t, "conv_neon");
  add_rows<Isa::scalar>(t, "conv_plain");
  add_conv_winograd(t);
  add_conv_reference(t);
}

}  // namespace cyb::cpu
