// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/attention/attention_testing.h"
#include "ops/elementwise/loops.h"

namespace cyb {
namespace {

using testing::isas;
using testing::Random;
using testing::same_bits;

std::vector<float> run(Isa isa, UnaryOp op, const std::vector<float>& x, int64_t cut = 1 << 30) {
  std::vector<float> y(x.size(), 99.0f);
  const UnaryArgs args{op, -0.5f, 0.75f, x.data(), y.data()};
  const auto n = static_cast<int64_t>(x.size());
  for (int64_t i = 0; i < n; i += cut) unary_kernels(isa).run(args, i, std::min(n, i + cut));
  return y;
}

TEST(Unary, gives_the_same_bits_on_every_instruction_set_and_for_any_cut) {
  Random random(5);
  std::vector<float> x = random.floats(200, 3.0f);
  for (float s : {1e-40f, 1e-30f, 1e-3f, 50.0f, 7000.0f, 65535.0f, 1e6f, 1e30f})
    x.push_back(s), x.push_back(-s);
  for (int k = 0; k <= static_cast<int>(UnaryOp::softsign); k++) {
    const auto op = static_cast<UnaryOp>(k);
    std::vector<float> from = x;
    if (op == UnaryOp::log || op == UnaryOp::sqrt)
      for (float& v : from) v = std::fabs(v);
    const std::vector<float> plain = run(Isa::scalar, op, from);
    for (const Isa isa : isas())
      for (const int64_t cut : {1 << 30, 1, 7, 16, 33})
        EXPECT_TRUE(same_bits(run(isa, op, from, cut), plain)) << k << " on " << to_string(isa);
  }
}

// |error| in 2^-24 of max(|y|, floor).
double worst(UnaryOp op, double (*definition)(double), float from, float to, double floor) {
  Random random(6);
  std::vector<float> x;
  for (int i = 0; i < 40000; ++i) x.push_back(from + (to - from) * (0.5f + 0.5f * random.uniform()));
  const std::vector<float> y = run(detect_isa(), op, x);
  double most = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = definition(x[i]);
    most = std::max(most, std::fabs(y[i] - expected) / (0x1p-24 * std::max(std::fabs(expected), floor)));
  }
  return most;
}

TEST(Unary, logarithm_sine_and_cosine_keep_their_bounds) {
  EXPECT_LE(worst(UnaryOp::log, std::log, 1e-6f, 2.0f, 0), 4);
  EXPECT_LE(worst(UnaryOp::log, std::log, 2.0f, 1e30f, 0), 2);
  EXPECT_LE(worst(UnaryOp::log, std::log, 1e-44f, 1e-37f, 0), 2);
  EXPECT_LE(worst(UnaryOp::sin, std::sin, -3.0f, 3.0f, 0.01), 4);
  EXPECT_LE(worst(UnaryOp::sin, std::sin, -65000.0f, 65000.0f, 0.1), 4);
  EXPECT_LE(worst(UnaryOp::cos, std::cos, -3.0f, 3.0f, 0.01), 4);
  EXPECT_LE(worst(UnaryOp::cos, std::cos, -65000.0f, 65000.0f, 0.1), 4);
  EXPECT_LE(worst(UnaryOp::cos, std::cos, -1e9f, 1e9f, 0), 1) << "one by one";
}

TEST(Unary, special_values) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : isas()) {
    const auto at = [&](UnaryOp op, float x) { return run(isa, op, {x})[0]; };
    EXPECT_EQ(at(UnaryOp::log, 0.0f), -inf);
    EXPECT_EQ(at(UnaryOp::log, -0.0f), -inf);
    EXPECT_EQ(at(UnaryOp::log, inf), inf);
    EXPECT_EQ(at(UnaryOp::log, 1.0f), 0.0f);
    EXPECT_TRUE(std::isnan(at(UnaryOp::log, -1.0f)));
    EXPECT_TRUE(std::isnan(at(UnaryOp::log, -inf)));
    EXPECT_TRUE(std::isnan(at(UnaryOp::sin, inf)));
    EXPECT_TRUE(std::isnan(at(UnaryOp::cos, nan)));
    EXPECT_EQ(at(UnaryOp::round, 2.5f), 2.0f);
    EXPECT_EQ(at(UnaryOp::round, -3.5f), -4.0f);
    EXPECT_TRUE(std::isnan(at(UnaryOp::sign, nan)));
    EXPECT_TRUE(std::isnan(at(UnaryOp::clamp, nan)));
    EXPECT_TRUE(std::isnan(at(UnaryOp::log, nan)));
  }
}

TEST(Loops, conversions_saturate_and_know_nan) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {0.9f, -0.9f,         1e30f,  -1e30f,  inf,   -inf,
                                nan,  2147483520.0f, 127.9f, -128.9f, 255.5f};
  const auto n = static_cast<int64_t>(x.size());
  for (const Isa isa : isas()) {
    std::vector<int64_t> wide(x.size());
    std::vector<int32_t> narrow(x.size());
    std::vector<int8_t> bytes(x.size());
    std::vector<uint8_t> codes(x.size());
    loop_kernels(isa).cast(DType::f32, DType::i64)(x.data(), wide.data(), n);
    loop_kernels(isa).cast(DType::f32, DType::i32)(x.data(), narrow.data(), n);
    loop_kernels(isa).cast(DType::f32, DType::i8)(x.data(), bytes.data(), n);
    loop_kernels(isa).cast(DType::f32, DType::u8)(x.data(), codes.data(), n);
    EXPECT_EQ(wide, (std::vector<int64_t>{0, 0, INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0, 2147483520,
                                          127, -128, 255}));
    EXPECT_EQ(narrow, (std::vector<int32_t>{0, 0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, 0, 2147483520,
                                            127, -128, 255}));
    EXPECT_EQ(bytes, (std::vector<int8_t>{0, 0, 127, -128, 127, -128, 0, 127, 127, -128, 127}));
    EXPECT_EQ(codes, (std::vector<uint8_t>{0, 0, 255, 0, 255, 0, 0, 255, 127, 0, 255}));
  }
}

}  // namespace
}  // namespace cyb
