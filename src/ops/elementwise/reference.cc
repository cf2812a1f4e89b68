// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of any type, by their definition. Floats compute in f64 and are rounded once, except
// where the operator is exact in its own type.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ir/ops/common.h"
#include "ops/common/walk.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

template <class T>
constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, F16> ||
                         std::is_same_v<T, Bf16>;

// Integers wrap as two's complement; the way through unsigned keeps that defined.
template <class T, class F>
T wrap(T a, T b, F&& f) {
  return static_cast<T>(
      f(static_cast<uint64_t>(static_cast<int64_t>(a)), static_cast<uint64_t>(static_cast<int64_t>(b))));
}

template <class T>
T binary(Op op, T a, T b) {
  if constexpr (is_real<T>) {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const C x = a, y = b;
    switch (op) {
      case Op::Add:
        return T(x + y);
      case Op::Sub:
        return T(x - y);
      case Op::Mul:
        return T(x * y);
      case Op::Div:
        return T(x / y);
      case Op::Pow:
        return T(static_cast<C>(std::pow(static_cast<double>(x), static_cast<double>(y))));
      case Op::Mod: {
        const C r = std::fmod(x, y);
        return T(r != 0 && (r < 0) != (y < 0) ? r + y : r);
      }
      case Op::Min:
        return std::isnan(x) || x < y ? T(x) : T(y);
      case Op::Max:
        return std::isnan(x) || x > y ? T(x) : T(y);
      default:
        return T(x);
    }
  } else {
    switch (op) {
      case Op::Add:
        return wrap(a, b, [](uint64_t x, uint64_t y) { return x + y; });
      case Op::Sub:
        return wrap(a, b, [](uint64_t x, uint64_t y) { return x - y; });
      case Op::Mul:
        return wrap(a, b, [](uint64_t x, uint64_t y) { return x * y; });
      case Op::Div:  // by 0 gives 0: there is no trap on untrusted data
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
          if (b == T(-1)) return wrap(T(0), a, [](uint64_t x, uint64_t y) { return x - y; });
        return static_cast<T>(a / b);
      case Op::Mod: {
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>) {
          if (b == T(-1)) return 0;
          const T r = static_cast<T>(a % b);
          return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
        } else {
          return static_cast<T>(a % b);
        }
      }
      case Op::Pow: {
        const double v = std::pow(static_cast<double>(a), static_cast<double>(b));
        return std::isfinite(v) && std::fabs(v) < 9.2e18 ? static_cast<T>(static_cast<int64_t>(v)) : T(0);
      }
      case Op::Min:
        return std::min(a, b);
      case Op::Max:
        return std::max(a, b);
      default:
        return a;
    }
  }
}

template <class T>
bool compare(Op op, T a, T b) {
  switch (op) {
    case Op::Equal:
      return a == b;
    case Op::Less:
      return a < b;
    case Op::LessEqual:
      return a <= b;
    case Op::Greater:
      return a > b;
    case Op::GreaterEqual:
      return a >= b;
    default:
      return false;
  }
}

void run_binary(Call& c) {
  const Op op = c.node->op;
  const Shape& shape = c.out[0].shape;
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape)};
  visit_dtype(c.in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* a = c.in[0].as<T>();
    const T* b = c.in[1].as<T>();
    T* y = c.out[0].as<T>();
    walk(shape, strides, [&](int64_t i, const auto& at) { y[i] = binary<T>(op, a[at[0]], b[at[1]]); });
  });
}

void run_compare(Call& c) {
  const Op op = c.node->op;
  const Shape& shape = c.out[0].shape;
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape)};
  visit_dtype(c.in[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = std::conditional_t<is_real<T>, double, T>;
    const T* a = c.in[0].as<T>();
    const T* b = c.in[1].as<T>();
    uint8_t* y = c.out[0].as<uint8_t>();
    walk(shape, strides, [&](int64_t i, const auto& at) {
      y[i] = compare<C>(op, static_cast<C>(a[at[0]]), static_cast<C>(b[at[1]]));
    });
  });
}

void run_logic(Call& c) {
  const Op op = c.node->op;
  const Shape& shape = c.out[0].shape;
  const uint8_t* a = c.in[0].as<uint8_t>();
  uint8_t* y = c.out[0].as<uint8_t>();
  if (op == Op::Not) {
    for (int64_t i = 0; i < shape.elements(); i++) y[i] = !a[i];
    return;
  }
  const uint8_t* b = c.in[1].as<uint8_t>();
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape)};
  walk(shape, strides, [&](int64_t i, const auto& at) {
    const bool x = a[at[0]], z = b[at[1]];
    y[i] = op == Op::And ? x && z : op == Op::Or ? x || z : x != z;
  });
}

void run_where(Call& c) {
  const Shape& shape = c.out[0].shape;
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape),
                              broadcast_strides(c.in[2].shape, shape)};
  const uint8_t* condition = c.in[0].as<uint8_t>();
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* a = c.in[1].as<T>();
    const T* b = c.in[2].as<T>();
    T* y = c.out[0].as<T>();
    walk(shape, strides, [&](int64_t i, const auto& at) { y[i] = condition[at[0]] ? a[at[1]] : b[at[2]]; });
  });
}

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

void run_unary(Call& c) {
  const Op op = c.node->op;
  const int64_t n = c.out[0].elements();
  visit_dtype(c.out[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    if constexpr (is_real<T>) {
      for (int64_t i = 0; i < n; i++) {
        const double v = unary(c, op, static_cast<double>(x[i]));
        if constexpr (std::is_same_v<T, double>)
          y[i] = v;
        else
          y[i] = T(static_cast<float>(v));
      }
    } else {
      for (int64_t i = 0; i < n; i++) {
        if (op == Op::Neg)
          y[i] = wrap(T(0), x[i], [](uint64_t a, uint64_t b) { return a - b; });
        else if (op == Op::Abs)
          y[i] = std::is_signed_v<T> && x[i] < T(1)
                     ? wrap(T(0), x[i], [](uint64_t a, uint64_t b) { return a - b; })
                     : x[i];
        else if (op == Op::Relu)
          y[i] = std::max(x[i], T(0));
        else
          y[i] = static_cast<T>(std::clamp(unary(c, op, static_cast<double>(x[i])),
                                           static_cast<double>(std::numeric_limits<T>::lowest()),
                                           static_cast<double>(std::numeric_limits<T>::max()) * (1 - 1e-16)));
      }
    }
  });
}

void run_cast(Call& c) {
  const int64_t n = c.out[0].elements();
  if (c.in[0].dtype == c.out[0].dtype) {
    std::memcpy(c.out[0].data, c.in[0].data, static_cast<size_t>(n) * size_of(c.out[0].dtype));
    return;
  }
  visit_dtype(c.in[0].dtype, [&](auto from) {
    using X = typename decltype(from)::type;
    visit_dtype(c.out[0].dtype, [&](auto to) {
      using Y = typename decltype(to)::type;
      const X* x = c.in[0].as<X>();
      Y* y = c.out[0].as<Y>();
      for (int64_t i = 0; i < n; i++) {
        if (c.out[0].dtype == DType::boolean) {
          y[i] = Y(x[i] != X(0) ? 1 : 0);
        } else if constexpr (is_real<X> && !is_real<Y>) {
          // Truncates; what does not fit saturates, NaN is 0: no undefined conversions.
          const double v = std::trunc(static_cast<double>(x[i]));
          constexpr double lo = static_cast<double>(std::numeric_limits<Y>::lowest());
          constexpr double hi = static_cast<double>(std::numeric_limits<Y>::max());
          y[i] = std::isnan(v) ? Y(0)
                 : v <= lo     ? std::numeric_limits<Y>::lowest()
                 : v >= hi     ? std::numeric_limits<Y>::max()
                               : static_cast<Y>(v);
        } else if constexpr (is_real<X>) {
          y[i] = Y(static_cast<std::conditional_t<std::is_same_v<Y, double>, double, float>>(x[i]));
        } else if constexpr (is_real<Y>) {
          y[i] = Y(static_cast<std::conditional_t<std::is_same_v<Y, double>, double, float>>(x[i]));
        } else {
          y[i] = static_cast<Y>(x[i]);
        }
      }
    });
  });
}

const char* reject_strings(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) == DType::string) return "strings";
  return nullptr;
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

void add_elementwise_rows(KernelTable& t) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Pow, Op::Mod, Op::Min, Op::Max})
    t.add({.op = op, .name = "binary_reference", .cost = 1000, .reject = reject_strings, .run = run_binary});
  for (Op op : {Op::Equal, Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual})
    t.add(
        {.op = op, .name = "compare_reference", .cost = 1000, .reject = reject_strings, .run = run_compare});
  for (Op op : {Op::And, Op::Or, Op::Xor, Op::Not})
    t.add({.op = op, .name = "logic_reference", .cost = 1000, .run = run_logic});
  t.add(
      {.op = Op::Where, .name = "where_reference", .cost = 1000, .reject = reject_strings, .run = run_where});
  for (Op op : {Op::Neg,     Op::Abs,  Op::Exp,   Op::Log,     Op::Sqrt, Op::Erf,   Op::Reciprocal,
                Op::Floor,   Op::Ceil, Op::Round, Op::Sin,     Op::Cos,  Op::Relu,  Op::LeakyRelu,
                Op::Sigmoid, Op::Tanh, Op::Silu,  Op::SoftCap, Op::Gelu, Op::Clamp, Op::NanToNum})
    t.add({.op = op, .name = "unary_reference", .cost = 1000, .reject = reject_strings, .run = run_unary});
  t.add({.op = Op::Cast, .name = "cast_reference", .cost = 1000, .reject = reject_strings, .run = run_cast});
}

}  // namespace cyb::cpu
