// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/norm.h"

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

void expect_near(const std::vector<float>& y, const std::vector<double>& expected, double size,
                 const std::string& what) {
  ASSERT_EQ(y.size(), expected.size());
  for (size_t i = 0; i < y.size(); ++i)
    ASSERT_LE(std::fabs(y[i] - expected[i]), 8 * 0x1p-24 * (std::fabs(expected[i]) + size))
        << what << " at " << i;
}

TEST(Norm, rms_layer_ada_and_l2_equal_torch_with_the_same_bits_on_every_instruction_set) {
  for (const int64_t n : {1, 5, 16, 63, 64, 100, 576}) {
    const std::string name = "norm." + std::to_string(n) + ".";
    const std::vector<float> x = golden_floats(name + "x"), w = golden_floats(name + "w"),
                             b = golden_floats(name + "b");
    std::vector<std::vector<float>> first(5);
    for (const Isa isa : isas()) {
      const NormKernels& k = norm_kernels(isa);
      std::vector<float> y(x.size());
      NormArgs a;
      a.rows = 3, a.n = a.x_stride = a.y_stride = n, a.x = x.data(), a.y = y.data(), a.eps = 1e-5f;
      const auto check = [&](int which, const char* golden_name, double size) {
        expect_near(y, golden(name + golden_name), size, name + golden_name + " on " + to_string(isa));
        if (first[which].empty()) first[which] = y;
        EXPECT_TRUE(same_bits(y, first[which])) << name << golden_name << " on " << to_string(isa);
        std::fill(y.begin(), y.end(), 99.0f);
      };
      a.weight = w.data();
      k.rms_norm(a, 0, 1), k.rms_norm(a, 1, 3);
      check(0, "rms0", 0);
      a.offset = 1;
      k.rms_norm(a, 0, 3);
      check(1, "rms1", 0);
      a.bias = b.data();
      k.layer_norm(a, 0, 3);
      check(2, "ada", 4);
      a.offset = 0;
      k.layer_norm(a, 0, 3);
      check(3, "layer", 4);
      a.weight = a.bias = nullptr;
      k.l2_norm(a, 0, 3);
      check(4, "l2", 0);
    }
  }
}

TEST(Norm, groups_equal_torch) {
  const std::vector<float> x = golden_floats("group.x"), w = golden_floats("group.w"),
                           b = golden_floats("group.b");
  for (const Isa isa : isas()) {
    std::vector<float> y(x.size());
    GroupNormArgs a;
    a.batch = 2, a.channels = 6, a.groups = 3, a.spatial = 35, a.x = x.data(), a.y = y.data(), a.eps = 1e-6f;
    a.weight = w.data(), a.bias = b.data();
    norm_kernels(isa).group_norm(a, 0, 4);
    norm_kernels(isa).group_norm(a, 4, 6);
    expect_near(y, golden("group.y"), 3, to_string(isa));
  }
}

TEST(Norm, fused_residual_addition_equals_two_steps) {
  Random random(3);
  for (const int64_t n : {7, 64, 100}) {
    const std::vector<float> x = random.floats(2 * n), r = random.floats(2 * n), w = random.floats(n);
    std::vector<float> added(x.size());
    for (size_t i = 0; i < x.size(); ++i) added[i] = x[i] + r[i];
    for (const Isa isa : isas()) {
      std::vector<float> expected(x.size()), y(x.size()), sum(x.size());
      NormArgs a;
      a.rows = 2, a.n = a.x_stride = a.y_stride = a.skip_stride = a.sum_stride = n, a.eps = 1e-6f,
      a.weight = w.data();
      a.x = added.data(), a.y = expected.data();
      norm_kernels(isa).rms_norm(a, 0, 2);
      a.x = x.data(), a.skip = r.data(), a.sum = sum.data(), a.y = y.data();
      norm_kernels(isa).rms_norm(a, 0, 2);
      EXPECT_TRUE(same_bits(y, expected) && same_bits(sum, added)) << n << " on " << to_string(isa);
    }
  }
}

TEST(Norm, lines_of_scale_and_shift_belong_to_groups_of_rows) {
  Random random(4);
  const int64_t n = 20;
  const std::vector<float> x = random.floats(6 * n), w = random.floats(2 * n), b = random.floats(2 * n);
  for (const Isa isa : isas()) {
    std::vector<float> all(x.size()), one(x.size());
    NormArgs a;
    a.rows = 6, a.n = a.x_stride = a.y_stride = a.line_stride = n, a.eps = 1e-6f, a.offset = 1;
    a.x = x.data(), a.y = all.data(), a.weight = w.data(), a.bias = b.data(), a.rows_per_line = 3;
    norm_kernels(isa).layer_norm(a, 0, 6);
    a.rows_per_line = 0, a.y = one.data();
    norm_kernels(isa).layer_norm(a, 0, 3);
    a.weight += n, a.bias += n;
    norm_kernels(isa).layer_norm(a, 3, 6);
    EXPECT_TRUE(same_bits(all, one));
  }
}

TEST(Norm, long_rows_keep_their_precision) {
  const int64_t n = 3'000'000;
  std::vector<float> x(static_cast<size_t>(n)), y(x.size());
  for (int64_t i = 0; i < n; ++i) x[i] = 100.0f + static_cast<float>(i % 2);
  NormArgs a;
  a.rows = 1, a.n = n, a.x = x.data(), a.y = y.data();
  norm_kernels(detect_isa()).layer_norm(a, 0, 1);
  EXPECT_NEAR(y[0], -1.0, 2e-6);
  EXPECT_NEAR(y[1], 1.0, 2e-6);
}

}  // namespace
}  // namespace cyb
