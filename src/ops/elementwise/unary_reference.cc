// SPDX-License-Identifier: Apache-2.0
// Operators of one operand and any type, by their definition: floats compute in f64 and are rounded once.
#include <algorithm>
#include <cmath>

#include "ir/ops/common.h"
#include "ops/common/convert.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

double unit(double x) { return std::isnan(x) ? x : std::min(std::max(x, 0.0), 1.0); }

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double unary(const Call& c, Op op, double x) {
  switch (op) {
    case Op::Neg:
      return -x;
    case Op::Abs:
      return std::fabs(x);
    case Op::Exp:
      return std::exp(x);
    case Op::Log:
      return std::log(x);
    case Op::Sqrt:
      return std::sqrt(x);
    case Op::Erf:
      return std::erf(x);
    case Op::Reciprocal:
      return 1 / x;
    case Op::Floor:
      return std::floor(x);
    case Op::Ceil:
      return std::ceil(x);
    case Op::Round:
      return std::nearbyint(x);
    case Op::Sin:
      return std::sin(x);
    case Op::Cos:
      return std::cos(x);
    case Op::Tan:
      return std::tan(x);
    case Op::Asin:
      return std::asin(x);
    case Op::Acos:
      return std::acos(x);
    case Op::Atan:
      return std::atan(x);
    case Op::Sinh:
      return std::sinh(x);
    case Op::Cosh:
      return std::cosh(x);
    case Op::Asinh:
      return std::asinh(x);
    case Op::Acosh:
      return std::acosh(x);
    case Op::Atanh:
      return std::atanh(x);
    case Op::Sign:
      return x > 0 ? 1 : x < 0 ? -1 : x;
    case Op::Elu: {
      const auto& a = c.attrs<ir::EluAttrs>();
      return a.gamma * (x < 0 ? a.alpha * std::expm1(x) : x);
    }
    case Op::HardSigmoid: {
      const auto& a = c.attrs<ir::HardSigmoidAttrs>();
      return unit(a.alpha * x + a.beta);
    }
    case Op::HardSwish:
      return x * unit(x / 6 + 0.5);
    case Op::Softplus:
      return softplus(x);
    case Op::Softsign:
      return x / (1 + std::fabs(x));
    case Op::Mish:
      return x * std::tanh(softplus(x));
    case Op::Relu:
      return x > 0 || std::isnan(x) ? x : 0;
    case Op::LeakyRelu:
      return x >= 0 ? x : x * c.attrs<ir::AlphaAttrs>().alpha;
    case Op::Sigmoid:
      return 1 / (1 + std::exp(-x));
    case Op::Tanh:
      return std::tanh(x);
    case Op::Silu:
      return x / (1 + std::exp(-x));
    case Op::SoftCap: {
      const double cap = c.attrs<ir::SoftCapAttrs>().cap;
      return cap * std::tanh(x / cap);
    }
    case Op::Gelu:
      return gelu(c.attrs<ir::GeluAttrs>().form, x);
    case Op::Clamp: {
      const auto& a = c.attrs<ir::ClampAttrs>();
      return std::isnan(x) ? x : std::min(std::max(x, a.min), a.max);
    }
    case Op::NanToNum: {
      const auto& a = c.attrs<ir::NanToNumAttrs>();
      return std::isnan(x) ? a.nan : std::isinf(x) ? (x > 0 ? a.posinf : a.neginf) : x;
    }
    default:
      return x;
  }
}

// Integers stay integers where the operator lets them; the rest goes through f64 and saturates.
template <class T>
T unary_integer(const Call& c, Op op, T x) {
  switch (op) {
    case Op::Neg:
      return wrap(T(0), x, [](uint64_t a, uint64_t b) { return a - b; });
    case Op::Abs:
      return std::is_signed_v<T> && x < T(0) ? wrap(T(0), x, [](uint64_t a, uint64_t b) { return a - b; })
                                             : x;
    case Op::Relu:
      return std::max(x, T(0));
    case Op::Sign:
      return x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0);
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::NanToNum:
      return x;
    case Op::Clamp: {
      const auto& a = c.attrs<ir::ClampAttrs>();
      return std::min(std::max(x, convert<T>(std::ceil(a.min))), convert<T>(std::floor(a.max)));
    }
    case Op::BitNot:
      return static_cast<T>(~x);
    default:
      return convert<T>(unary(c, op, static_cast<double>(x)));
  }
}

void run_unary(Call& c) {
  const Op op = c.node->op;
  const int64_t n = c.out[0].elements();
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    for (int64_t i = 0; i < n; i++) {
      if constexpr (is_real<T>)
        y[i] = convert<T>(unary(c, op, static_cast<double>(x[i])));
      else
        y[i] = unary_integer<T>(c, op, x[i]);
    }
  });
}

void run_test(Call& c) {  // IsNan, IsInf
  const int64_t n = c.out[0].elements();
  const bool nan = c.node->op == Op::IsNan;
  const ir::IsInfAttrs inf = nan ? ir::IsInfAttrs() : c.attrs<ir::IsInfAttrs>();
  uint8_t* y = c.out[0].as<uint8_t>();
  visit_dtype(c.in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = c.in[0].as<T>();
    for (int64_t i = 0; i < n; i++) {
      const double v = static_cast<double>(x[i]);
      y[i] = nan ? std::isnan(v) : std::isinf(v) && (v > 0 ? inf.positive : inf.negative);
    }
  });
}

void run_prelu(Call& c) {
  const Shape& shape = c.out[0].shape;
  const auto strides = broadcast_strides(c.in[1].shape, shape);
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = c.in[0].as<T>();
    const T* slope = c.in[1].as<T>();
    T* y = c.out[0].as<T>();
    walk<1>(shape, {strides}, [&](int64_t i, const auto& at) {
      if constexpr (is_real<T>)
        y[i] = x[i] < T(0) ? convert<T>(static_cast<double>(x[i]) * static_cast<double>(slope[at[0]])) : x[i];
      else
        y[i] = x[i] < T(0) ? wrap(x[i], slope[at[0]], [](uint64_t a, uint64_t b) { return a * b; }) : x[i];
    });
  });
}

void run_glu(Call& c) {
  const Shape& shape = c.out[0].shape;
  const int axis = axis_of(c.attrs<ir::AxisAttrs>().axis, shape.rank());
  const int64_t run = shape.elements(axis), outer = shape.elements(0, axis);
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_real<T>) {
      for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < run; i++) {
          const T* x = c.in[0].as<T>() + 2 * o * run + i;
          const double gate = static_cast<double>(x[run]);
          c.out[0].as<T>()[o * run + i] = convert<T>(static_cast<double>(x[0]) / (1 + std::exp(-gate)));
        }
    }
  });
}

}  // namespace

double gelu(ir::GeluForm form, double x) {
  switch (form) {
    case ir::GeluForm::erf:
      return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
    case ir::GeluForm::tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case ir::GeluForm::quick:
      return x / (1 + std::exp(-1.702 * x));
  }
  return x;
}

void add_unary_rows(KernelTable& t) {
  for (Op op :
       {Op::Neg,      Op::Abs,      Op::Exp,   Op::Log,       Op::Sqrt,    Op::Erf,         Op::Reciprocal,
        Op::Floor,    Op::Ceil,     Op::Round, Op::Sin,       Op::Cos,     Op::Tan,         Op::Asin,
        Op::Acos,     Op::Atan,     Op::Sinh,  Op::Cosh,      Op::Asinh,   Op::Acosh,       Op::Atanh,
        Op::Sign,     Op::BitNot,   Op::Relu,  Op::LeakyRelu, Op::Sigmoid, Op::Tanh,        Op::Silu,
        Op::SoftCap,  Op::Gelu,     Op::Clamp, Op::NanToNum,  Op::Elu,     Op::HardSigmoid, Op::HardSwish,
        Op::Softplus, Op::Softsign, Op::Mish})
    t.add({.op = op, .name = "unary_reference", .cost = 1000, .reject = reject_strings, .run = run_unary});
  for (Op op : {Op::IsNan, Op::IsInf})
    t.add({.op = op, .name = "test_reference", .cost = 1000, .reject = reject_strings, .run = run_test});
  t.add(
      {.op = Op::PRelu, .name = "prelu_reference", .cost = 1000, .reject = reject_strings, .run = run_prelu});
  t.add({.op = Op::Glu, .name = "glu_reference", .cost = 1000, .reject = reject_strings, .run = run_glu});
}

}  // namespace cyb::cpu
