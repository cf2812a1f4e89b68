// SPDX-License-Identifier: Apache-2.0
// For reference kernels that compute in f64 whatever their operands' types are.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "ops/common/walk.h"

namespace cyb::cpu {

// The elements as f64.
inline std::vector<double> reals(const Arg& a) {
  std::vector<double> out(static_cast<size_t>(a.elements()));
  visit_dtype(a.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = a.as<T>();
    for (size_t i = 0; i < out.size(); i++) out[i] = static_cast<double>(x[i]);
  });
  return out;
}

// As reals, for operands that may be absent: then empty.
inline std::vector<double> reals_of(const Call& c, size_t operand) {
  return c.has(operand) ? reals(c.in[operand]) : std::vector<double>();
}

// `v` as T: floats are rounded, integers rounded (ties to even) and saturated, NaN is 0.
template <class T>
T rounded(double v) {
  if constexpr (std::is_same_v<T, double>) {
    return v;
  } else if constexpr (!std::is_integral_v<T>) {
    return T(static_cast<float>(v));
  } else {
    const double r = std::nearbyint(v);
    constexpr auto lo = std::numeric_limits<T>::lowest(), hi = std::numeric_limits<T>::max();
    return r != r                         ? T(0)
           : r <= static_cast<double>(lo) ? lo
           : r >= static_cast<double>(hi) ? hi
                                          : static_cast<T>(r);
  }
}

// out[i] = f(i) for every element.
template <class F>
void fill(const Arg& out, F&& f) {
  visit_dtype(out.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < out.elements(); i++) out.as<T>()[i] = rounded<T>(f(i));
  });
}
inline void store(const Arg& out, const std::vector<double>& values) {
  fill(out, [&](int64_t i) { return values[static_cast<size_t>(i)]; });
}

// Element i of an integer operand.
inline int64_t integer_at(const Arg& a, int64_t i) {
  int64_t v = 0;
  visit_dtype(a.dtype, [&](auto tag) { v = static_cast<int64_t>(a.as<typename decltype(tag)::type>()[i]); });
  return v;
}

}  // namespace cyb::cpu
