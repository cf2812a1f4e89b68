// SPDX-License-Identifier: Apache-2.0
// For reference kernels: conversion between element types without undefined cases, and integers that wrap.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/common/walk.h"

namespace cyb::cpu {

template <class T>
constexpr bool is_real = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, F16> ||
                         std::is_same_v<T, Bf16>;

// To f32 by rounding to odd: a second rounding to 16 bits then is the only one that counts.
inline float to_odd(double v) {
  const float near = static_cast<float>(v);
  if (static_cast<double>(near) == v || std::isnan(v) || std::isinf(near)) return near;
  uint32_t bits = std::bit_cast<uint32_t>(near);
  if (std::fabs(static_cast<double>(near)) > std::fabs(v)) bits--;
  return std::bit_cast<float>(bits | 1);
}

// Floats to integers truncate; what does not fit saturates, NaN is 0.
template <class Y, class X>
Y convert(X x) {
  if constexpr (std::is_same_v<X, Y>) {
    return x;
  } else if constexpr (is_real<X> && !is_real<Y>) {
    const double v = std::trunc(static_cast<double>(x));
    constexpr double lo = static_cast<double>(std::numeric_limits<Y>::lowest());
    constexpr double hi = static_cast<double>(std::numeric_limits<Y>::max());
    return std::isnan(v) ? Y(0)
           : v <= lo     ? std::numeric_limits<Y>::lowest()
           : v >= hi     ? std::numeric_limits<Y>::max()
                         : static_cast<Y>(v);
  } else if constexpr (std::is_same_v<Y, double> || std::is_same_v<Y, float>) {
    return static_cast<Y>(x);
  } else if constexpr (is_real<Y>) {
    if constexpr (std::is_same_v<X, float> || std::is_same_v<X, F16> || std::is_same_v<X, Bf16>)
      return Y(static_cast<float>(x));
    else
      return Y(to_odd(static_cast<double>(x)));
  } else {
    return static_cast<Y>(x);
  }
}

// Integers wrap as two's complement; the way through unsigned keeps that defined.
template <class T, class F>
T wrap(T a, T b, F&& f) {
  return static_cast<T>(
      f(static_cast<uint64_t>(static_cast<int64_t>(a)), static_cast<uint64_t>(static_cast<int64_t>(b))));
}

// a < b with every NaN above all else, so that sorting has an order.
template <class T>
bool below(T a, T b) {
  if constexpr (is_real<T>) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
  } else {
    return a < b;
  }
}

inline const char* reject_strings(const Query& q) {
  for (size_t i = 0; i < q.operands.size(); i++)
    if (q.has(i) && q.dtype(i) == DType::string) return "strings";
  return nullptr;
}

// Element i of an integer operand.
inline int64_t integer_at(const Arg& a, int64_t i) {
  int64_t value = 0;
  visit_dtype(a.dtype, [&](auto tag) { value = convert<int64_t>(a.as<typename decltype(tag)::type>()[i]); });
  return value;
}

}  // namespace cyb::cpu
