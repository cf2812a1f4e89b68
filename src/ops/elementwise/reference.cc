// SPDX-License-Identifier: Apache-2.0
// Elementwise operators of any type, by their definition. Floats compute in f64 and are rounded once, except
// where the operator is exact in its own type.
#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "ir/ops/common.h"
#include "ops/common/convert.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// Whether a shift by b leaves bits of a T.
template <class T>
bool shifts(T b) {
  return b >= T(0) && static_cast<uint64_t>(b) < 8 * sizeof(T);
}

// Wraps; negative exponents leave 0 of all but 1 and −1 (and of 0, for which there is no answer).
template <class T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0)
    return base == T(1) ? T(1) : std::is_signed_v<T> && base == T(-1) ? (exponent % 2 ? T(-1) : T(1)) : T(0);
  uint64_t y = 1, x = static_cast<uint64_t>(static_cast<int64_t>(base));
  for (auto e = static_cast<uint64_t>(exponent); e; e >>= 1, x *= x)
    if (e & 1) y *= x;
  return static_cast<T>(y);
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
      case Op::Mod: {
        const C r = std::fmod(x, y);
        return T(r != 0 && (r < 0) != (y < 0) ? r + y : r);
      }
      case Op::FMod:
        return T(std::fmod(x, y));
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
      case Op::FMod:
        if (b == 0) return 0;
        if constexpr (std::is_signed_v<T>)
          if (b == T(-1)) return 0;
        return static_cast<T>(a % b);
      case Op::BitAnd:
        return static_cast<T>(a & b);
      case Op::BitOr:
        return static_cast<T>(a | b);
      case Op::BitXor:
        return static_cast<T>(a ^ b);
      case Op::ShiftLeft:
        return shifts<T>(b) ? static_cast<T>(static_cast<uint64_t>(a) << b) : T(0);
      case Op::ShiftRight:
        if (shifts<T>(b)) return static_cast<T>(a >> b);
        if constexpr (std::is_signed_v<T>) return a < 0 ? T(-1) : T(0);
        return T(0);
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

// The exponent may have another type than the base and the result.
void run_pow(Call& c) {
  const Shape& shape = c.out[0].shape;
  const std::array strides = {broadcast_strides(c.in[0].shape, shape),
                              broadcast_strides(c.in[1].shape, shape)};
  // Exponents as f64 or i64 first: types are many, pairs of types too many.
  const int64_t n = c.in[1].elements();
  std::vector<double> reals(static_cast<size_t>(n));
  std::vector<int64_t> integers(static_cast<size_t>(n));
  const bool whole = !is_float(c.in[1].dtype);
  visit_dtype(c.in[1].dtype, [&](auto exponent) {
    using E = typename decltype(exponent)::type;
    for (int64_t i = 0; i < n; i++) {
      reals[static_cast<size_t>(i)] = static_cast<double>(c.in[1].as<E>()[i]);
      integers[static_cast<size_t>(i)] = convert<int64_t>(c.in[1].as<E>()[i]);
    }
  });
  visit_dtype(c.in[0].dtype, [&](auto base) {
    using T = typename decltype(base)::type;
    const T* a = c.in[0].as<T>();
    T* y = c.out[0].as<T>();
    walk(shape, strides, [&](int64_t i, const auto& at) {
      const auto b = static_cast<size_t>(at[1]);
      if constexpr (!is_real<T>)
        if (whole) {
          y[i] = integer_power<T>(a[at[0]], integers[b]);
          return;
        }
      y[i] = convert<T>(std::pow(static_cast<double>(a[at[0]]), reals[b]));
    });
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

}  // namespace

void add_elementwise_rows(KernelTable& t) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Mod, Op::FMod, Op::Min, Op::Max, Op::BitAnd,
                Op::BitOr, Op::BitXor, Op::ShiftLeft, Op::ShiftRight})
    t.add({.op = op, .name = "binary_reference", .cost = 1000, .reject = reject_strings, .run = run_binary});
  t.add({.op = Op::Pow, .name = "pow_reference", .cost = 1000, .reject = reject_strings, .run = run_pow});
  for (Op op : {Op::Equal, Op::Less, Op::LessEqual, Op::Greater, Op::GreaterEqual})
    t.add(
        {.op = op, .name = "compare_reference", .cost = 1000, .reject = reject_strings, .run = run_compare});
  for (Op op : {Op::And, Op::Or, Op::Xor, Op::Not})
    t.add({.op = op, .name = "logic_reference", .cost = 1000, .run = run_logic});
  t.add(
      {.op = Op::Where, .name = "where_reference", .cost = 1000, .reject = reject_strings, .run = run_where});
}

}  // namespace cyb::cpu
