// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ops/attention/attention_testing.h"
#include "ops/simd/golden_testing.h"

namespace cyb {
namespace {

using testing::golden;
using testing::golden_floats;
using testing::isas;
using testing::Random;
using testing::same_bits;

constexpr float kInf = std::numeric_limits<float>::infinity();

struct Named {
  Activation kind;
  const char* name;
  float alpha = 0, beta = 0;
  // Bound of |error| in 2^-24 of max(|y|, size·|x|, floor): what the terms of the definition allow.
  double bound = 4, of_x = 0, floor = 0;
};
const Named kAll[] = {
    {Activation::identity, "identity", 0, 0, 0},
    {Activation::relu, "relu", 0, 0, 0},
    {Activation::relu6, "relu6", 0, 0, 0},
    {Activation::relu_squared, "relu_squared", 0, 0, 1},
    {Activation::leaky_relu, "leaky_relu", 0.125f, 0, 1},
    {Activation::elu, "elu", 0.75f, 0, 4},
    {Activation::silu, "silu", 0, 0, 4, 1},
    {Activation::gelu_erf, "gelu_erf", 0, 0, 4, 1},
    {Activation::gelu_tanh, "gelu_tanh", 0, 0, 4, 1},
    {Activation::gelu_quick, "gelu_quick", 0, 0, 4, 1},
    {Activation::sigmoid, "sigmoid", 0, 0, 6},
    {Activation::tanh, "tanh", 0, 0, 4},
    {Activation::softplus, "softplus", 0, 0, 6},
    {Activation::mish, "mish", 0, 0, 6, 1},
    {Activation::hard_sigmoid, "hard_sigmoid", 1.0f / 6, 0.5f, 4, 0, 1},
    {Activation::hard_swish, "hard_swish", 0, 0, 4, 1},
    {Activation::exp, "exp", 0, 0, 4},
    {Activation::expm1, "expm1", 0, 0, 4},
    {Activation::erf, "erf", 0, 0, 4},
    {Activation::soft_cap, "soft_cap", 3.0f, 0, 6},
};

std::vector<float> run(Isa isa, const Named& a, const std::vector<float>& x, int64_t cut = 1 << 30) {
  std::vector<float> y(x.size(), 99.0f);
  const ActivationArgs args{a.kind, a.alpha, a.beta, x.data(), y.data()};
  const int64_t n = static_cast<int64_t>(x.size());
  for (int64_t i = 0; i < n; i += cut) activation_kernels(isa).activate(args, i, std::min(n, i + cut));
  return y;
}

TEST(Activation, equals_torch_with_the_same_bits_on_every_instruction_set_and_for_any_cut) {
  const std::vector<float> x = golden_floats("act.x");
  for (const Named& a : kAll) {
    const std::vector<double>& expected = golden(std::string("act.") + a.name);
    const std::vector<float> plain = run(Isa::scalar, a, x);
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::fabs(expected[i]) > 3.4e38) continue;
      const double size = std::max({std::fabs(expected[i]), a.of_x * std::fabs(x[i]), a.floor});
      EXPECT_LE(std::fabs(plain[i] - expected[i]), a.bound * 0x1p-24 * size + 6e-10 * std::fabs(expected[i]) +
                                                       1.2e-38 * std::max(1.0f, std::fabs(x[i])))
          << a.name << " at " << x[i] << ": " << plain[i] << " for " << expected[i];
    }
    for (const Isa isa : isas())
      for (const int64_t cut : {1 << 30, 1, 7, 16, 33})
        EXPECT_TRUE(same_bits(run(isa, a, x, cut), plain)) << a.name;
  }
}

// Errors in units in the last place against f64, over many magnitudes.
double worst_ulps(Activation kind, double (*definition)(double), float from, float to) {
  Random random(11);
  std::vector<float> x;
  for (int i = 0; i < 40000; ++i) x.push_back(from + (to - from) * (0.5f + 0.5f * random.uniform()));
  for (float s = 1e-6f; s < 1; s *= 1.7f) x.push_back(from * s), x.push_back(to * s);
  const std::vector<float> y = run(detect_isa(), {kind, ""}, x);
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = definition(x[i]);
    int exponent;
    std::frexp(expected, &exponent);
    worst = std::max(worst, std::fabs(y[i] - expected) / std::ldexp(1.0, std::max(exponent - 24, -149)));
  }
  return worst;
}

TEST(Activation, exp_and_its_relatives_keep_their_bounds_in_ulps) {
  EXPECT_LE(worst_ulps(Activation::exp, std::exp, -87.0f, 88.7f), 1.0);
  EXPECT_LE(worst_ulps(Activation::exp, std::exp, -104.0f, -87.0f), 1.0) << "below the normal range";
  EXPECT_LE(worst_ulps(Activation::exp, std::exp, -1.0f, 1.0f), 1.0);
  EXPECT_LE(worst_ulps(Activation::expm1, std::expm1, -2.0f, 2.0f), 4.0);
  EXPECT_LE(worst_ulps(Activation::tanh, std::tanh, -10.0f, 10.0f), 2.0);
  EXPECT_LE(worst_ulps(Activation::erf, std::erf, -4.5f, 4.5f), 2.0);
  EXPECT_LE(worst_ulps(
                Activation::sigmoid, [](double v) { return 1 / (1 + std::exp(-v)); }, -80.0f, 80.0f),
            2.5);
  EXPECT_LE(worst_ulps(
                Activation::softplus,
                [](double v) { return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v)); },
                -30.0f, 30.0f),
            2.5);
}

TEST(Activation, special_values) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : isas()) {
    const auto at = [&](Activation kind, float x) { return run(isa, {kind, "", 1.0f}, {x})[0]; };
    EXPECT_EQ(at(Activation::exp, 0.0f), 1.0f);
    EXPECT_EQ(at(Activation::exp, -kInf), 0.0f);
    EXPECT_EQ(at(Activation::exp, kInf), kInf);
    EXPECT_EQ(at(Activation::exp, 89.0f), kInf);
    EXPECT_EQ(at(Activation::exp, -120.0f), 0.0f);
    EXPECT_EQ(at(Activation::tanh, kInf), 1.0f);
    EXPECT_EQ(at(Activation::tanh, -kInf), -1.0f);
    EXPECT_EQ(at(Activation::erf, kInf), 1.0f);
    EXPECT_EQ(at(Activation::erf, -5.0f), -1.0f);
    EXPECT_EQ(at(Activation::sigmoid, -kInf), 0.0f);
    EXPECT_EQ(at(Activation::softplus, kInf), kInf);
    EXPECT_NEAR(at(Activation::silu, -200.0f), 0.0f, 2e-36f);
    for (const Named& a : kAll) {
      EXPECT_TRUE(std::isnan(at(a.kind, nan))) << a.name << " on " << to_string(isa);
    }
  }
}

TEST(Activation, gated_products_equal_two_steps_and_read_halves_of_a_row) {
  Random random(12);
  for (const int64_t n : {1, 15, 16, 100, 255, 256, 257, 600}) {
    const std::vector<float> x = random.floats(3 * 2 * n, 4.0f);
    for (const Named& a : {kAll[6], kAll[8], kAll[10]}) {
      std::vector<float> expected(static_cast<size_t>(3 * n));
      const std::vector<float> act = run(Isa::scalar, a, x);
      for (int64_t r = 0; r < 3; ++r)
        for (int64_t i = 0; i < n; ++i) expected[r * n + i] = act[r * 2 * n + i] * x[r * 2 * n + n + i];
      for (const Isa isa : isas()) {
        std::vector<float> y(static_cast<size_t>(3 * n));
        GatedArgs g;
        g.activation = a.kind, g.n = n, g.a = x.data(), g.b = x.data() + n, g.y = y.data();
        g.a_stride = g.b_stride = 2 * n, g.y_stride = n;
        activation_kernels(isa).gated(g, 0, 2);
        activation_kernels(isa).gated(g, 2, 3);
        EXPECT_TRUE(same_bits(y, expected)) << a.name << ", " << n << ", " << to_string(isa);
      }
    }
  }
}

TEST(Softmax, equals_torch_with_the_same_bits_on_every_instruction_set) {
  for (const int64_t n : {1, 5, 16, 100, 300}) {
    const std::string name = "softmax." + std::to_string(n);
    const std::vector<float> x = golden_floats(name + ".x");
    const std::vector<double>& expected = golden(name + ".y");
    std::vector<float> first;
    for (const Isa isa : isas()) {
      std::vector<float> y = x;  // in place
      const SoftmaxArgs a{n, y.data(), n, y.data(), n};
      activation_kernels(isa).softmax(a, 0, 2);
      for (size_t i = 0; i < y.size(); ++i) {
        // The difference to the largest is rounded, and the exponential takes that error as its own.
        const auto row = x.begin() + static_cast<int64_t>(i) / n * n;
        const double below = *std::max_element(row, row + n) - x[i];
        EXPECT_LE(std::fabs(y[i] - expected[i]),
                  ((12 + (below < 1e4 ? below : 0)) * 0x1p-24 + 6e-10) * expected[i])
            << n << " at " << i;
      }
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(y, first)) << n << " on " << to_string(isa);
    }
  }
}

TEST(Softmax, follows_ieee_for_hidden_rows_and_stays_right_in_very_long_ones) {
  for (const Isa isa : isas()) {
    std::vector<float> x(20, -kInf);
    activation_kernels(isa).softmax({20, x.data(), 20, x.data(), 20}, 0, 1);
    EXPECT_TRUE(std::isnan(x[0]) && std::isnan(x[19]));
  }
  std::vector<float> x(1 << 20, 0.0f);
  activation_kernels(detect_isa()).softmax({1 << 20, x.data(), 0, x.data(), 0}, 0, 1);
  EXPECT_EQ(x[0], 0x1p-20f);
}

}  // namespace
}  // namespace cyb
