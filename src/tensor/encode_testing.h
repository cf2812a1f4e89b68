// SPDX-License-Identifier: Apache-2.0
// For the tests of encoding: specs, messages of errors, values that are hard to encode.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/error_testing.h"
#include "tensor/encode.h"

namespace cyb::testing {

inline TensorSpec spec_of(Encoding encoding, std::vector<int64_t> shape, int tile = 0,
                          std::vector<int> order = {}) {
  TensorSpec s;
  s.name = "t";
  s.shape = std::move(shape);
  s.encoding = encoding;
  s.frac_bits = default_frac_bits(encoding);
  s.tile = tile;
  s.order = std::move(order);
  return s;
}

template <class F>
std::string message_of(F&& f, ErrorKind kind = ErrorKind::WeightFormat) {
  return error_message(f, kind);
}

// Blocks that are hard in different ways, by number.
inline std::vector<float> hard_values(int which, size_t n, std::mt19937& random) {
  std::vector<float> x(n);
  auto uniform = [&] { return static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f; };
  const double scales[] = {1, 1e-2, 1e-30, 1e30, 3e-38, 1e-42, 3.3e4, 5e-3};
  const double scale = scales[which % 8];
  for (size_t i = 0; i < n; i++) {
    float v = static_cast<float>(uniform() * scale);
    switch (which / 8) {
      case 1:
        v = i / 32 % 3 == 0 ? 0.0f : v;
        break;  // blocks of zeros
      case 2:
        v = i % 64 == 5 ? v * 200 : v * 0.01f;
        break;  // one outlier
      case 3:
        v = static_cast<float>(v * std::pow(2.0, -static_cast<int>(i / 32 % 24)));
        break;  // falling blocks
      case 4:
        v = std::fabs(v);
        break;  // one sign
      case 5:
        v = i % 2 ? static_cast<float>(scale) : -static_cast<float>(scale);
        break;  // both extremes
      case 6:
        v = i % 7 ? 0.0f : v;
        break;  // sparse
      default:
        break;
    }
    x[i] = v;
  }
  return x;
}
inline constexpr int kHard = 7 * 8;

}  // namespace cyb::testing
