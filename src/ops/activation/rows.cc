// SPDX-License-Identifier: Apache-2.0
// Kernel rows of activations, gated products and softmax.
#include "ops/rows.h"

#include <cmath>

#include "ops/activation/activation.h"

namespace cyb::cpu {

using ir::Op;

namespace {

constexpr int64_t kGrain = 4096;  // elements worth a second thread

const char* only_f32(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "not f32";
  return nullptr;
}

const char* reject_softmax(const Query& q) {
  if (const char* why = only_f32(q)) return why;
  const int64_t axis = q.node.as<ir::AxisAttrs>().axis;
  return axis == -1 || axis == q.operands[0]->rank() - 1 ? nullptr : "not the last axis";
}

Activation gelu_of(ir::GeluForm form) {
  return form == ir::GeluForm::erf    ? Activation::gelu_erf
         : form == ir::GeluForm::tanh ? Activation::gelu_tanh
                                      : Activation::gelu_quick;
}

ActivationArgs unary_args(const Call& c) {
  ActivationArgs a;
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  switch (c.node->op) {
    case Op::Silu:
      a.activation = Activation::silu;
      break;
    case Op::Gelu:
      a.activation = gelu_of(c.attrs<ir::GeluAttrs>().form);
      break;
    case Op::Relu:
      a.activation = Activation::relu;
      break;
    case Op::LeakyRelu:
      a.activation = Activation::leaky_relu;
      a.alpha = static_cast<float>(c.attrs<ir::AlphaAttrs>().alpha);
      break;
    case Op::Sigmoid:
      a.activation = Activation::sigmoid;
      break;
    case Op::Tanh:
      a.activation = Activation::tanh;
      break;
    case Op::Exp:
      a.activation = Activation::exp;
      break;
    case Op::Erf:
      a.activation = Activation::erf;
      break;
    default:
      a.activation = Activation::soft_cap;
      a.alpha = static_cast<float>(c.attrs<ir::SoftCapAttrs>().cap);
      break;
  }
  return a;
}

template <Isa isa>
void run_unary(Call& c) {
  const ActivationArgs a = unary_args(c);
  c.pool->parallel_for(c.out[0].elements(), kGrain, [&](int64_t begin, int64_t end, int) {
    activation_kernels(isa).activate(a, begin, end);
  });
}

template <Isa isa>
void run_gated(Call& c) {
  const ir::Activation act = c.node->op == Op::SwiGlu                             ? ir::Activation::silu
                             : c.attrs<ir::GeluAttrs>().form == ir::GeluForm::erf ? ir::Activation::gelu
                             : c.attrs<ir::GeluAttrs>().form == ir::GeluForm::tanh
                                 ? ir::Activation::gelu_tanh
                                 : ir::Activation::gelu_quick;
  gated(*c.pool, isa, act, c.in[0].f32(), c.in[1].f32(), c.out[0].elements(), c.out[0].f32());
}

template <Isa isa>
void run_softmax(Call& c) {
  SoftmaxArgs a;
  a.n = c.in[0].shape.back();
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  a.x_stride = a.y_stride = a.n;
  const int64_t rows = a.n ? c.in[0].elements() / a.n : 0;
  c.pool->parallel_for(rows, 1 + kGrain / (a.n + 1), [&](int64_t begin, int64_t end, int) {
    activation_kernels(isa).softmax(a, begin, end);
  });
}

void gated_reference(Call& c) {
  const bool silu = c.node->op == Op::SwiGlu;
  for (int64_t i = 0; i < c.out[0].elements(); i++) {
    const double a = c.in[0].f32()[i];
    const double act = silu ? a / (1 + std::exp(-a)) : gelu(c.attrs<ir::GeluAttrs>().form, a);
    c.out[0].f32()[i] = static_cast<float>(act * c.in[1].f32()[i]);
  }
}

template <Isa isa>
void add_rows(KernelTable& t, const char* unary, const char* glu, const char* softmax) {
  const int cost = isa == Isa::scalar ? 500 : isa == Isa::avx2 ? 20 : 10;
  for (Op op :
       {Op::Silu, Op::Gelu, Op::Relu, Op::LeakyRelu, Op::Sigmoid, Op::Tanh, Op::Exp, Op::Erf, Op::SoftCap})
    t.add({.op = op, .name = unary, .isa = isa, .cost = cost, .reject = only_f32, .run = run_unary<isa>});
  for (Op op : {Op::SwiGlu, Op::GeGlu})
    t.add({.op = op, .name = glu, .isa = isa, .cost = cost, .reject = only_f32, .run = run_gated<isa>});
  t.add({.op = Op::Softmax,
         .name = softmax,
         .isa = isa,
         .cost = cost,
         .reject = reject_softmax,
         .run = run_softmax<isa>});
}

}  // namespace

void gated(ThreadPool& pool, Isa isa, ir::Activation act, const float* a, const float* b, int64_t n,
           float* y) {
  GatedArgs g;
  switch (act) {
    case ir::Activation::none:
      g.activation = Activation::identity;
      break;
    case ir::Activation::silu:
      g.activation = Activation::silu;
      break;
    case ir::Activation::gelu:
      g.activation = Activation::gelu_erf;
      break;
    case ir::Activation::gelu_tanh:
      g.activation = Activation::gelu_tanh;
      break;
    case ir::Activation::gelu_quick:
      g.activation = Activation::gelu_quick;
      break;
    case ir::Activation::relu:
      g.activation = Activation::relu;
      break;
    case ir::Activation::sigmoid:
      g.activation = Activation::sigmoid;
      break;
    case ir::Activation::tanh:
      g.activation = Activation::tanh;
      break;
  }
  // Elementwise, so rows may be cut anywhere.
  pool.parallel_for(n, kGrain, [&](int64_t begin, int64_t end, int) {
    GatedArgs piece = g;
    piece.n = end - begin;
    piece.a = a + begin;
    piece.b = b + begin;
    piece.y = y + begin;
    activation_kernels(isa).gated(piece, 0, 1);
  });
}

void add_activation_rows(KernelTable& t) {
  add_rows<Isa::avx512>(t, "activation_avx512", "gated_avx512", "softmax_avx512");
  add_rows<Isa::avx2>(t, "activation_avx2", "gated_avx2", "softmax_avx2");
  add_rows<Isa::neon>(t, "activation_neon", "gated_neon", "softmax_neon");
  add_rows<Isa::scalar>(t, "activation_plain", "gated_plain", "softmax_plain");
  for (Op op : {Op::SwiGlu, Op::GeGlu})
    t.add({.op = op, .name = "gated_reference", .cost = 1000, .reject = only_f32, .run = gated_reference});
}

}  // namespace cyb::cpu
