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

ActivationArgs unary_args(const Call& c) {
  ActivationArgs a;
  a.x = c.in[0].f32();
  a.y = c.out[0].f32();
  switch (c.node->op) {
    case Op::Silu:
      a.activation = Activation::silu;
      break;
    case Op::Gelu:
      a.activation = activation_of(ir::activation_of(c.attrs<ir::GeluAttrs>().form));
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
    case Op::Elu:
      a.activation = Activation::selu;
      a.alpha = static_cast<float>(c.attrs<ir::EluAttrs>().alpha);
      a.beta = static_cast<float>(c.attrs<ir::EluAttrs>().gamma);
      break;
    case Op::HardSigmoid:
      a.activation = Activation::hard_sigmoid;
      a.alpha = static_cast<float>(c.attrs<ir::HardSigmoidAttrs>().alpha);
      a.beta = static_cast<float>(c.attrs<ir::HardSigmoidAttrs>().beta);
      break;
    case Op::HardSwish:
      a.activation = Activation::hard_swish;
      break;
    case Op::Softplus:
      a.activation = Activation::softplus;
      break;
    case Op::Mish:
      a.activation = Activation::mish;
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
  const ir::Activation act =
      c.node->op == Op::SwiGlu ? ir::Activation::silu : ir::activation_of(c.attrs<ir::GeluAttrs>().form);
  gated(*c.pool, isa, act, c.in[0].f32(), c.in[1].f32(), c.out[0].elements(), c.out[0].f32());
}

template <Isa isa>
void run_softmax(Call& c) {
  const Shape& shape = c.in[0].shape;
  const int64_t given = c.attrs<ir::AxisAttrs>().axis;
  const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  const int64_t n = shape[axis], inner = shape.elements(axis + 1);
  const bool log = c.node->op == Op::LogSoftmax;
  if (inner != 1) {
    const SoftmaxColumnsArgs a{n, inner, c.in[0].f32(), c.out[0].f32(), log};
    c.pool->parallel_for(
        shape.elements(0, axis) * SoftmaxColumnsArgs::groups_of(inner), 1 + kGrain / (16 * n + 1),
        [&](int64_t begin, int64_t end, int) { activation_kernels(isa).softmax_columns(a, begin, end); });
    return;
  }
  const SoftmaxArgs a{n, c.in[0].f32(), n, c.out[0].f32(), n, log};
  c.pool->parallel_for(
      n ? shape.elements() / n : 0, 1 + kGrain / (n + 1),
      [&](int64_t begin, int64_t end, int) { activation_kernels(isa).softmax(a, begin, end); });
}

// act(a)·b with the second half in the place of a.
template <Isa isa>
void run_glu(Call& c) {
  const Shape& shape = c.out[0].shape;
  const int64_t given = c.attrs<ir::AxisAttrs>().axis;
  const int axis = static_cast<int>(given < 0 ? given + shape.rank() : given);
  GatedArgs g;
  g.activation = Activation::sigmoid;
  g.n = g.y_stride = shape.elements(axis);
  g.a_stride = g.b_stride = 2 * g.n;
  g.a = c.in[0].f32() + g.n;
  g.b = c.in[0].f32();
  g.y = c.out[0].f32();
  const int64_t rows = shape.elements(0, axis);
  if (g.n == 0) return;
  // Long rows are cut too: few rows are usual where the axis is the channels'.
  if (rows >= c.pool->threads() || g.n < 2 * kGrain)
    return c.pool->parallel_for(rows, 1 + kGrain / g.n, [&](int64_t begin, int64_t end, int) {
      activation_kernels(isa).gated(g, begin, end);
    });
  for (int64_t r = 0; r < rows; r++)
    c.pool->parallel_for(g.n, kGrain, [&](int64_t begin, int64_t end, int) {
      GatedArgs piece = g;
      piece.n = end - begin;
      piece.a += r * g.a_stride + begin;
      piece.b += r * g.b_stride + begin;
      piece.y += r * g.y_stride + begin;
      activation_kernels(isa).gated(piece, 0, 1);
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
  for (Op op : {Op::Silu, Op::Gelu, Op::Relu, Op::LeakyRelu, Op::Sigmoid, Op::Tanh, Op::Exp, Op::Erf,
                Op::SoftCap, Op::Elu, Op::HardSigmoid, Op::HardSwish, Op::Softplus, Op::Mish})
    t.add({.op = op,
           .name = unary,
           .isa = isa,
           .cost = cost,
           .reject = only_f32,
           .run = run_unary<isa>,
           .layouts = layouts_alike});
  for (Op op : {Op::SwiGlu, Op::GeGlu})
    t.add({.op = op, .name = glu, .isa = isa, .cost = cost, .reject = only_f32, .run = run_gated<isa>});
  for (Op op : {Op::Softmax, Op::LogSoftmax})
    t.add({.op = op, .name = softmax, .isa = isa, .cost = cost, .reject = only_f32, .run = run_softmax<isa>});
  t.add({.op = Op::Glu, .name = glu, .isa = isa, .cost = cost, .reject = only_f32, .run = run_glu<isa>});
}

}  // namespace

Activation activation_of(ir::Activation act) {
  switch (act) {
    case ir::Activation::none:
      return Activation::identity;
    case ir::Activation::silu:
      return Activation::silu;
    case ir::Activation::gelu:
      return Activation::gelu_erf;
    case ir::Activation::gelu_tanh:
      return Activation::gelu_tanh;
    case ir::Activation::gelu_quick:
      return Activation::gelu_quick;
    case ir::Activation::relu:
      return Activation::relu;
    case ir::Activation::sigmoid:
      return Activation::sigmoid;
    case ir::Activation::tanh:
      return Activation::tanh;
  }
  return Activation::identity;
}

void gated(ThreadPool& pool, Isa isa, ir::Activation act, const float* a, const float* b, int64_t n,
           float* y) {
  GatedArgs g;
  g.activation = activation_of(act);
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
