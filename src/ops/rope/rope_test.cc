// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.h"

#include <gtest/gtest.h>

#include "ops/attention/attention_testing.h"
#include "ops/simd/golden_testing.h"

namespace cyb {
namespace {

using testing::golden;
using testing::golden_floats;
using testing::isas;
using testing::Random;
using testing::same_bits;

const double kShort[] = {1.0, 1.1, 1.3, 1.6, 2.0, 2.5, 3.0, 4.0},
             kLong[] = {1.0, 1.5, 3.0, 6.0, 9.0, 14.0, 30.0, 50.0};

struct Case {
  const char* name;
  RopeConfig config;
  int64_t length = 1;
};

std::vector<Case> cases() {
  const auto make = [](RopeType type, int dims, double theta) {
    RopeConfig c;
    c.type = type, c.dims = dims, c.head_dim = dims, c.theta = theta;
    return c;
  };
  std::vector<Case> list;
  list.push_back({"default", make(RopeType::none, 64, 10000)});
  list.push_back({"default_big", make(RopeType::none, 128, 500000)});
  RopeConfig c = make(RopeType::linear, 64, 1000000);
  c.factor = 8;
  list.push_back({"linear", c});
  c = make(RopeType::dynamic, 64, 10000);
  c.factor = 2, c.max_context = 4096;
  list.push_back({"dynamic_short", c, 100});
  list.push_back({"dynamic_long", c, 9001});
  c = make(RopeType::llama3, 128, 500000);
  c.factor = 8, c.original_context = 8192;
  list.push_back({"llama3", c});
  c.factor = 32, c.dims = 64;
  list.push_back({"llama32", c});
  c = make(RopeType::yarn, 128, 1000000);
  c.factor = 4, c.original_context = 32768;
  list.push_back({"yarn", c});
  c = make(RopeType::yarn, 64, 10000);
  c.factor = 40, c.mscale = 0.707, c.mscale_all_dim = 0.5, c.original_context = 4096;
  list.push_back({"yarn_mscale", c});
  c = make(RopeType::yarn, 64, 150000);
  c.factor = 32, c.truncate = false, c.original_context = 4096;
  list.push_back({"yarn_smooth", c});
  c = make(RopeType::longrope, 16, 10000);
  c.factor = 0, c.max_context = 131072, c.original_context = 4096, c.short_factor = kShort,
  c.long_factor = kLong;
  list.push_back({"longrope_short", c, 4096});
  list.push_back({"longrope_long", c, 4097});
  c = make(RopeType::proportional, 16, 1000000);
  c.head_dim = 64;
  list.push_back({"proportional", c});
  list.push_back({"partial", make(RopeType::none, 32, 10000)});
  return list;
}

double ulps(float got, double expected) {
  int exponent;
  std::frexp(expected, &exponent);
  return std::fabs(got - expected) / std::ldexp(1.0, std::max(exponent, -20) - 24);
}

TEST(Rope, frequencies_of_every_type_equal_transformers) {
  for (const Case& c : cases()) {
    const std::string name = std::string("rope.") + c.name + ".";
    const std::vector<float> expected = golden_floats(name + "inv_freq");
    ASSERT_EQ(static_cast<size_t>(rope_pairs(c.config)), expected.size()) << c.name;
    std::vector<float> got(expected.size());
    const float factor = rope_frequencies(c.config, c.length, got.data());
    EXPECT_EQ(factor, golden_floats(name + "factor")[0]) << c.name;
    // torch's vectorized pow is one unit off here and there; this one rounds f64.
    for (size_t i = 0; i < got.size(); ++i) {
      int exponent;
      std::frexp(expected[i], &exponent);
      EXPECT_LE(std::fabs(got[i] - expected[i]),
                (expected[i] == 0 ? 0 : 2.0) * std::ldexp(1.0, exponent - 24))
          << c.name << " at " << i;
    }
  }
}

TEST(Rope, cosines_and_sines_equal_the_reference_far_beyond_the_context) {
  const std::vector<double>& at = golden("rope.positions");
  const std::vector<int32_t> positions(at.begin(), at.end());
  for (const Case& c : cases()) {
    const std::string name = std::string("rope.") + c.name + ".";
    const std::vector<float> inv_freq = golden_floats(name + "inv_freq");
    const std::vector<double>&cosines = golden(name + "cos"), &sines = golden(name + "sin");
    std::vector<float> cos(cosines.size()), sin(cosines.size());
    RopeTableArgs a;
    a.positions = positions.data(), a.inv_freq = inv_freq.data(),
    a.pairs = static_cast<int32_t>(inv_freq.size());
    a.attention_factor = golden_floats(name + "factor")[0], a.cos = cos.data(), a.sin = sin.data();
    const int64_t rows = static_cast<int64_t>(positions.size());
    rope_table(a, 0, 3);
    rope_table(a, 3, rows);
    const double bound = a.attention_factor == 1 ? 0.51 : 1.52;  // the product rounds again
    for (size_t i = 0; i < cos.size(); ++i) {
      EXPECT_LE(ulps(cos[i], cosines[i]), bound) << c.name << " at " << i;
      EXPECT_LE(ulps(sin[i], sines[i]), bound) << c.name << " at " << i;
    }
  }
}

TEST(Rope, sine_and_cosine_are_right_to_half_a_unit_for_any_angle) {
  Random random(1);
  for (const float size : {1e-3f, 1.0f, 10.0f, 1000.0f, 131072.0f, 9e5f, 1e8f})
    for (int i = 0; i < 20000; ++i) {
      const float x = random.uniform() * size;
      float s, c;
      rope_sin_cos(x, &s, &c);
      const auto wrong = [](float got, double expected) {
        int exponent;
        std::frexp(expected, &exponent);
        return std::fabs(got - expected) / std::ldexp(1.0, exponent - 24);
      };
      ASSERT_LE(wrong(s, std::sin(static_cast<double>(x))), 0.51) << x;
      ASSERT_LE(wrong(c, std::cos(static_cast<double>(x))), 0.51) << x;
    }
}

TEST(Rope, both_pairings_equal_the_reference_with_the_same_bits_on_every_instruction_set) {
  const std::vector<float> x = golden_floats("rope.apply.x");
  const int32_t positions[] = {0, 1, 2, 3, 60};
  RopeConfig config;
  config.dims = 24;
  float inv_freq[12], cos[60], sin[60];
  RopeTableArgs t;
  t.attention_factor = rope_frequencies(config, 61, inv_freq);
  t.positions = positions, t.inv_freq = inv_freq, t.pairs = 12, t.cos = cos, t.sin = sin;
  rope_table(t, 0, 5);
  for (const RopePairs pairing : {RopePairs::half, RopePairs::interleaved}) {
    const std::vector<double>& expected =
        golden(pairing == RopePairs::half ? "rope.apply.half" : "rope.apply.interleaved");
    std::vector<float> first;
    for (const Isa isa : isas()) {
      std::vector<float> y(x.size()), in_place = x;
      RopeArgs a;
      a.pairing = pairing, a.pairs = 12, a.head_dim = 24, a.heads = 2, a.cos = cos, a.sin = sin;
      a.x_row = a.y_row = 48, a.x_head = a.y_head = 24;
      a.x = x.data(), a.y = y.data();
      rope_kernels(isa).apply(a, 0, 2);
      rope_kernels(isa).apply(a, 2, 5);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(y[i], expected[i], 1e-6) << i << " on " << to_string(isa);
      if (first.empty()) first = y;
      EXPECT_TRUE(same_bits(y, first)) << to_string(isa);
      a.x = a.y = in_place.data();
      rope_kernels(isa).apply(a, 0, 5);
      EXPECT_TRUE(same_bits(y, in_place)) << to_string(isa);
    }
  }
}

TEST(Rope, channels_beyond_the_rotated_ones_are_copied) {
  Random random(2);
  const std::vector<float> x = random.floats(2 * 3 * 20), cos = random.floats(2 * 5),
                           sin = random.floats(2 * 5);
  for (const Isa isa : isas())
    for (const RopePairs pairing : {RopePairs::half, RopePairs::interleaved}) {
      std::vector<float> y(x.size(), 99.0f);
      RopeArgs a;
      a.pairing = pairing, a.pairs = 5, a.head_dim = 20, a.heads = 3, a.cos = cos.data(), a.sin = sin.data();
      a.x_row = a.y_row = 60, a.x_head = a.y_head = 20, a.x = x.data(), a.y = y.data();
      rope_kernels(isa).apply(a, 0, 2);
      for (int64_t r = 0; r < 2; ++r)
        for (int64_t h = 0; h < 3; ++h)
          for (int64_t d = 0; d < 20; ++d) {
            const int64_t at = r * 60 + h * 20;
            if (d >= 10) {
              ASSERT_EQ(y[at + d], x[at + d]);
              continue;
            }
            const bool half = pairing == RopePairs::half;
            const int64_t pair = half ? d % 5 : d / 2;
            const bool second = half ? d >= 5 : d % 2;
            const int64_t other = half ? (d + 5) % 10 : d ^ 1;
            const float turned = second ? x[at + d] * cos[r * 5 + pair] + x[at + other] * sin[r * 5 + pair]
                                        : x[at + d] * cos[r * 5 + pair] - x[at + other] * sin[r * 5 + pair];
            ASSERT_EQ(y[at + d], turned);
          }
    }
}

TEST(Rope, sections_of_position_axes_equal_qwen_vl) {
  const std::vector<double>& at = golden("mrope.positions");
  const std::vector<int32_t> positions(at.begin(), at.end());
  RopeConfig config;
  config.dims = 16;
  float inv_freq[8];
  rope_frequencies(config, 41, inv_freq);
  const int32_t sections2[] = {2, 3, 3}, sections3[] = {4, 2, 2};
  for (const bool interleaved : {false, true}) {
    uint8_t axis_of[8];
    rope_axes(interleaved ? sections3 : sections2, 3, interleaved, 8, axis_of);
    float cos[32], sin[32];
    RopeTableArgs a;
    a.positions = positions.data(), a.axis_stride = 4, a.axis_of = axis_of, a.inv_freq = inv_freq,
    a.pairs = 8;
    a.cos = cos, a.sin = sin;
    rope_table(a, 0, 4);
    const std::string name = interleaved ? "mrope.qwen3." : "mrope.qwen2.";
    for (size_t i = 0; i < 32; ++i) {
      EXPECT_NEAR(cos[i], golden(name + "cos")[i], 4e-6) << name << i;
      EXPECT_NEAR(sin[i], golden(name + "sin")[i], 4e-6) << name << i;
    }
  }
}

}  // namespace
}  // namespace cyb
