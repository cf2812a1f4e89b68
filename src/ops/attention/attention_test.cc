// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/attention.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/attention/attention_testing.h"
#include "ops/simd/golden_testing.h"

namespace cyb {
namespace {

using testing::isas;
using testing::Random;
using testing::Rows;
using testing::run_reference;
using testing::run_sdpa;
using testing::same_bits;
using testing::worst;

// Values are in [-1, 1) and so are results; scores of size s carry errors of about 2^-24·Σ|q||k|, and so do
// weights in proportion.
double tolerance(const SdpaArgs& a, double score_size) {
  const double k = std::max(1.0, std::sqrt(static_cast<double>(a.k_dim)) / 4);
  return 4 * 0x1p-24 * (k * score_size + 8);
}

struct Problem {
  Rows q, k, v;
  std::vector<float> bias, slopes, table, sinks;
  std::vector<int32_t> lengths, key_lengths, prefix, query_segments, key_segments, start;
  SdpaArgs args;

  Problem(Random& random, int64_t b, int64_t t, int64_t s, int64_t h, int64_t hk, int64_t dk, int64_t dv)
      : q(random, b, t, h, dk), k(random, b, s, hk, dk), v(random, b, s, hk, dv) {
    args.batch = b;
    args.queries = t;
    args.keys = s;
    args.heads = static_cast<int32_t>(h);
    args.kv_heads = static_cast<int32_t>(hk);
    args.k_dim = static_cast<int32_t>(dk);
    args.v_dim = static_cast<int32_t>(dv);
    args.q = q.input();
    args.k = k.input();
    args.v = v.input();
    args.scale = 1.0f / std::sqrt(static_cast<float>(dk));
  }
};

void expect_all_equal_reference(const SdpaArgs& args, const char* what) {
  const std::vector<float> expected = run_reference(args);
  const std::vector<float> plain = run_sdpa(args, Isa::scalar, 1);
  const double bound = tolerance(args, static_cast<double>(args.scale) * args.k_dim);
  EXPECT_LE(worst(plain, expected), bound) << what;
  for (const Isa isa : isas())
    for (const int threads : {1, 2})
      EXPECT_TRUE(same_bits(run_sdpa(args, isa, threads), plain))
          << what << " on " << to_string(isa) << ", " << threads;
}

TEST(Sdpa, equals_the_reference_over_odd_shapes_with_the_same_bits_on_every_instruction_set) {
  Random random(1);
  const int64_t shapes[][7] = {
      // B, T, S, H, Hk, Dk, Dv
      {1, 1, 1, 1, 1, 1, 1},       {1, 1, 63, 1, 1, 16, 16},     {2, 3, 64, 2, 1, 8, 24},
      {1, 5, 65, 6, 2, 20, 12},    {1, 64, 64, 3, 3, 64, 64},    {1, 7, 513, 7, 1, 40, 40},
      {1, 2, 1100, 4, 2, 64, 80},  {3, 33, 70, 2, 2, 5, 3},      {1, 130, 130, 8, 2, 72, 72},
      {1, 1, 1537, 14, 2, 64, 64}, {1, 200, 31, 1, 1, 192, 128}, {1, 13, 600, 1, 1, 17, 31},
  };
  for (const auto& s : shapes) {
    Problem p(random, s[0], s[1], s[2], s[3], s[4], s[5], s[6]);
    expect_all_equal_reference(p.args, "full");
    if (s[1] == s[2]) {
      p.args.causal = true;
      expect_all_equal_reference(p.args, "causal");
    }
  }
}

TEST(Sdpa, reads_and_writes_strided_operands) {
  Random random(2);
  // q, k and v interleaved in one row, as a fused projection leaves them.
  const int64_t t = 70, h = 4, hk = 2, d = 24, width = (h + 2 * hk) * d + 3;
  const std::vector<float> rows = random.floats(t * width);
  Problem dense(random, 1, t, t, h, hk, d, d);
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < h * d; ++j) {
      dense.q.data[i * h * d + j] = rows[i * width + j];
      if (j < hk * d) dense.k.data[i * hk * d + j] = rows[i * width + h * d + j];
      if (j < hk * d) dense.v.data[i * hk * d + j] = rows[i * width + (h + hk) * d + j];
    }
  const std::vector<float> expected = run_sdpa(dense.args, Isa::scalar, 1);
  SdpaArgs a = dense.args;
  a.q = {rows.data(), 0, width, d};
  a.k = {rows.data() + h * d, 0, width, d};
  a.v = {rows.data() + (h + hk) * d, 0, width, d};
  // Out as [heads, T, d].
  std::vector<float> out(h * t * d), scratch(sdpa_scratch_bytes(a, t, 1) / 4);
  a.out = {out.data(), 0, d, t * d};
  ThreadPool pool(1);
  sdpa(a, attention_kernels(detect_isa()), pool, scratch.data());
  for (int64_t i = 0; i < t; ++i)
    for (int64_t j = 0; j < h; ++j)
      for (int64_t x = 0; x < d; ++x) ASSERT_EQ(out[(j * t + i) * d + x], expected[(i * h + j) * d + x]);
}

TEST(Sdpa, every_mask_rule_equals_its_definition) {
  Random random(3);
  for (int round = 0; round < 3; ++round) {
    const int64_t b = 2, t = 20 + random.below(120), h = 4;
    Problem p(random, b, t, t, h, 2, 16, 16);
    const auto with = [&](const char* what, auto change) {
      SdpaArgs saved = p.args;
      change(p.args);
      expect_all_equal_reference(p.args, what);
      p.args = saved;
    };
    p.lengths = {static_cast<int32_t>(t), static_cast<int32_t>(t / 2)};
    p.prefix = {static_cast<int32_t>(t / 3), 0};
    for (int64_t i = 0; i < b * t; ++i) p.query_segments.push_back(static_cast<int32_t>(i * 4 / (b * t)));
    p.key_segments = p.query_segments;
    p.start = {3, 70};
    with("causal", [&](SdpaArgs& a) { a.causal = true; });
    for (const int64_t window : {1, 2, 5, 64, 65, 1000}) {
      with("causal window", [&](SdpaArgs& a) { a.causal = true, a.window = window; });
      with("two-sided window", [&](SdpaArgs& a) { a.window = window; });
      with("two-sided window and prefix",
           [&](SdpaArgs& a) { a.window = window, a.prefix = p.prefix.data(); });
      with("causal window and prefix",
           [&](SdpaArgs& a) { a.causal = true, a.window = window, a.prefix = p.prefix.data(); });
    }
    with("prefix", [&](SdpaArgs& a) { a.causal = true, a.prefix = p.prefix.data(); });
    with("key lengths", [&](SdpaArgs& a) { a.key_lengths = p.lengths.data(); });
    with("query lengths", [&](SdpaArgs& a) { a.lengths = p.lengths.data(), a.causal = true; });
    with("query start", [&](SdpaArgs& a) { a.query_start = p.start.data(), a.causal = true, a.window = 9; });
    with("segments", [&](SdpaArgs& a) {
      a.query_segments = p.query_segments.data();
      a.key_segments = p.key_segments.data();
      a.key_segment_columns = t;
      a.causal = round % 2;
    });
  }
}

TEST(Sdpa, every_bias_rule_equals_its_definition) {
  Random random(4);
  const int64_t b = 2, t = 100, s = 150, h = 4;
  Problem p(random, b, t, s, h, 2, 16, 16);
  const SdpaArgs plain = p.args;
  const float hidden = -std::numeric_limits<float>::infinity();
  p.bias = random.floats(b * h * t * s, 2.0f);
  for (size_t i = 0; i < p.bias.size(); i += 3) p.bias[i] = hidden;
  for (int64_t j = 0; j < s; ++j) p.bias[5 * s + j] = hidden;  // a whole row
  for (int broadcast = 0; broadcast < 4; ++broadcast) {
    p.args.bias = p.bias.data();
    p.args.bias_columns = s;
    p.args.bias_row = s;
    p.args.bias_head = broadcast & 1 ? 0 : t * s;
    p.args.bias_batch = broadcast & 2 ? 0 : h * t * s;
    expect_all_equal_reference(p.args, "additive");
  }
  p.args = plain;
  p.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  p.args.alibi = p.slopes.data();
  expect_all_equal_reference(p.args, "alibi, symmetric");
  p.args.causal = true;
  expect_all_equal_reference(p.args, "alibi, causal");
  p.args = plain;
  for (const bool both : {true, false}) {
    const std::vector<float> weights = random.floats(8 * h);
    p.table.resize(static_cast<size_t>(h * relative_stride(20)));
    t5_relative_table(weights.data(), static_cast<int>(h), both, 8, 20, p.table.data());
    p.args.relative = p.table.data();
    p.args.relative_reach = 20;
    p.args.causal = !both;
    p.args.scale = 1.0f;
    expect_all_equal_reference(p.args, "t5");
  }
  p.args = plain;
  p.args.soft_cap = 2.0f;
  p.args.scale = 3.0f;
  expect_all_equal_reference(p.args, "soft-cap");
  p.args.causal = true;
  expect_all_equal_reference(p.args, "soft-cap before the mask");
  p.args = plain;
  p.sinks = {1.0f, -3.0f, hidden, 30.0f};
  p.args.sinks = p.sinks.data();
  expect_all_equal_reference(p.args, "sinks");
}

TEST(Sdpa, rows_that_see_nothing_give_zeros_and_nan_is_not_hidden) {
  Random random(5);
  Problem p(random, 1, 4, 70, 2, 1, 16, 16);
  p.key_lengths = {0};
  p.args.key_lengths = p.key_lengths.data();
  for (const Isa isa : isas())
    EXPECT_EQ(worst(run_sdpa(p.args, isa, 1), std::vector<float>(4 * 2 * 16)), 0.0);
  p.args.key_lengths = nullptr;
  p.q.data[0] = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : isas()) {
    const std::vector<float> out = run_sdpa(p.args, isa, 1);
    EXPECT_TRUE(std::isnan(out[0])) << to_string(isa);
    EXPECT_FALSE(std::isnan(out[16])) << to_string(isa);
  }
}

// Two rows of a tile: the window of the second begins at the second span, so what the first span holds is not
// its, even where 0 · inf would make it NaN. One thread goes from span to span, two share them out.
TEST(Sdpa, infinities_beyond_a_rows_window_do_not_reach_it) {
  Random random(22);
  const int64_t keys = 1024, window = 512, dim = 16;
  Rows q(random, 1, 2, 1, dim), k(random, 1, keys, 1, dim), v(random, 1, keys, 1, dim);
  v.data[static_cast<size_t>((window - 1) * dim)] = INFINITY;
  SdpaArgs a;
  a.queries = 2, a.keys = keys, a.heads = a.kv_heads = 1, a.k_dim = a.v_dim = static_cast<int32_t>(dim);
  a.q = q.input(), a.k = k.input(), a.v = v.input();
  a.causal = true, a.window = window;
  const int32_t start = static_cast<int32_t>(keys - 2);
  a.query_start = &start;
  const std::vector<float> expected = run_reference(a);
  ASSERT_TRUE(std::isinf(expected[0]) && std::isfinite(expected[static_cast<size_t>(dim)]));
  for (Isa isa : isas())
    for (int threads : {1, 2}) {
      const std::vector<float> got = run_sdpa(a, isa, threads);
      EXPECT_EQ(got[0], INFINITY);
      for (auto i = static_cast<size_t>(dim); i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5);
    }
}

TEST(Sdpa, probabilities_of_listed_heads_equal_the_reference) {
  Random random(6);
  const int32_t heads[] = {3, 0, 3};
  for (const int64_t s : {10, 64, 700}) {
    Problem p(random, 2, 9, s, 4, 2, 24, 16);
    p.lengths = {9, 4};
    p.sinks = random.floats(4);
    p.args.lengths = p.lengths.data();
    p.args.sinks = p.sinks.data();
    p.args.window = 20;
    p.args.prob_heads = heads;
    p.args.prob_count = 3;
    p.args.prob_columns = s + 2;
    std::vector<float> expected, got;
    const std::vector<float> out = run_reference(p.args, &expected);
    for (const Isa isa : isas()) {
      EXPECT_LE(worst(run_sdpa(p.args, isa, 2, &got), out), tolerance(p.args, 5));
      EXPECT_LE(worst(got, expected), tolerance(p.args, 5)) << s << " keys on " << to_string(isa);
    }
  }
}

TEST(Sdpa, a_weight_is_exact_to_some_ulps) {
  std::vector<float> k{0, 0}, v{0, 1}, q{1};
  for (float x = 0; x < 100; x = x * 1.0625f + 0.03125f) {
    k[1] = -x;
    SdpaArgs a;
    a.queries = a.heads = a.kv_heads = a.k_dim = a.v_dim = 1;
    a.keys = 2;
    a.q = {q.data(), 1, 1, 1};
    a.k = {k.data(), 2, 1, 1};
    a.v = {v.data(), 2, 1, 1};
    a.scale = 1;
    const double expected = 1 / (1 + std::exp(static_cast<double>(x)));
    // Besides the steps of softmax, log2(e) · x is rounded.
    for (const Isa isa : isas())
      EXPECT_NEAR(run_sdpa(a, isa, 1)[0], expected, expected * (4 + 2 * x) * 0x1p-24 + 1e-44) << x;
  }
}

TEST(Sdpa, large_scores_do_not_overflow) {
  Random random(7);
  Problem p(random, 1, 8, 300, 2, 2, 64, 16);
  p.args.scale = 500.0f;
  const std::vector<float> expected = run_reference(p.args);
  for (const Isa isa : isas()) EXPECT_LE(worst(run_sdpa(p.args, isa, 1), expected), 2e-2) << to_string(isa);
}

// Scores as large as they come: the largest has all the weight.
TEST(Sdpa, scores_of_any_size_find_their_largest) {
  std::vector<float> q{1}, k(20, -1e38f), v(20);
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i);
  for (const float top : {1.0f, 3e9f, 1e10f, 1e12f, 1e20f, 3e38f})
    for (const float cap : {0.0f, 1e38f}) {
      k[1] = top;
      SdpaArgs a;
      a.queries = a.heads = a.kv_heads = a.k_dim = a.v_dim = 1;
      a.keys = 20;
      a.q = {q.data(), 1, 1, 1}, a.k = {k.data(), 20, 1, 1}, a.v = {v.data(), 20, 1, 1};
      a.scale = 1;
      a.soft_cap = cap;
      for (const Isa isa : isas()) EXPECT_EQ(run_sdpa(a, isa, 1)[0], 1.0f) << top << ' ' << to_string(isa);
    }
}

// The masks of exporters: the least finite number in place of -inf. A row of nothing else is a mean.
TEST(Sdpa, a_row_masked_by_finite_numbers_is_a_mean) {
  Random random(23);
  for (const int64_t keys : {20, 700}) {
    Problem p(random, 1, 2, keys, 1, 1, 16, 16);
    std::vector<float> bias(static_cast<size_t>(2 * keys), -3.4028235e38f);
    bias[3] = 0;  // the first row sees one key
    p.args.bias = bias.data();
    p.args.bias_columns = p.args.bias_row = keys;
    const std::vector<float> expected = run_reference(p.args);
    for (const Isa isa : isas())
      EXPECT_LE(worst(run_sdpa(p.args, isa, 1), expected), tolerance(p.args, 1)) << to_string(isa);
  }
}

// The definition itself, and the fast path, against PyTorch in f64.
TEST(Sdpa, equals_torch_for_each_rule) {
  using testing::golden_floats;
  Random random(8);
  Problem p(random, 2, 6, 9, 4, 2, 8, 5);
  p.q.data = golden_floats("sdpa.in.q"), p.k.data = golden_floats("sdpa.in.k"),
  p.v.data = golden_floats("sdpa.in.v");
  p.bias = golden_floats("sdpa.in.bias"), p.sinks = golden_floats("sdpa.in.sinks");
  p.slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  p.start = {3, 3}, p.prefix = {5, 5};
  const std::vector<float> weights = golden_floats("sdpa.in.weights");
  const int32_t heads[] = {0, 1, 2, 3};
  SdpaArgs base = p.args;
  base.q = p.q.input(), base.k = p.k.input(), base.v = p.v.input();
  base.scale = 0.4f;
  base.query_start = p.start.data();
  base.prob_heads = heads, base.prob_count = 4, base.prob_columns = 9;
  const auto check = [&](const std::string& name, auto change) {
    SdpaArgs a = base;
    change(a);
    const std::vector<float> expected = golden_floats("sdpa." + name),
                             probs = golden_floats("sdpa." + name + ".p");
    std::vector<float> got;
    EXPECT_LE(worst(run_reference(a, &got), expected), 3e-7) << name;
    EXPECT_LE(worst(got, probs), 1e-7) << name;
    for (const Isa isa : isas()) {
      EXPECT_LE(worst(run_sdpa(a, isa, 1, &got), expected), 2e-6) << name << " on " << to_string(isa);
      EXPECT_LE(worst(got, probs), 1e-6) << name << " on " << to_string(isa);
    }
  };
  check("full", [](SdpaArgs&) {});
  check("causal", [](SdpaArgs& a) { a.causal = true; });
  check("window", [](SdpaArgs& a) { a.causal = true, a.window = 3; });
  check("two_sided", [](SdpaArgs& a) { a.window = 4; });
  check("prefix", [&](SdpaArgs& a) { a.causal = true, a.prefix = p.prefix.data(); });
  check("bias",
        [&](SdpaArgs& a) { a.bias = p.bias.data(), a.bias_head = 54, a.bias_row = a.bias_columns = 9; });
  check("alibi", [&](SdpaArgs& a) { a.causal = true, a.alibi = p.slopes.data(); });
  check("soft_cap", [](SdpaArgs& a) { a.causal = true, a.soft_cap = 1.5f; });
  check("sinks", [&](SdpaArgs& a) { a.sinks = p.sinks.data(); });
  for (const bool both : {true, false}) {
    p.table.resize(static_cast<size_t>(4 * relative_stride(16)));
    t5_relative_table(weights.data(), 4, both, 8, 16, p.table.data());
    check(both ? "t5_both" : "t5_one",
          [&](SdpaArgs& a) { a.relative = p.table.data(), a.relative_reach = 16; });
  }
}

TEST(T5Buckets, equal_transformers) {
  // transformers 5.24, T5Attention._relative_position_bucket, num_buckets = 32, max_distance = 128.
  const int64_t distance[] = {-500, -128, -127, -100, -64, -20, -17, -16, -15, -9,  -8,  -7,
                              -1,   0,    1,    7,    8,   9,   15,  16,  64,  127, 128, 500};
  const int both[] = {15, 15, 15, 15, 14, 10, 10, 10, 9,  8,  8,  7,
                      1,  0,  17, 23, 24, 24, 25, 26, 30, 31, 31, 31};
  const int one[] = {31, 31, 31, 30, 26, 17, 16, 16, 15, 9, 8, 7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  for (size_t i = 0; i < std::size(distance); ++i) {
    EXPECT_EQ(t5_bucket(distance[i], true, 32, 128), both[i]) << distance[i];
    EXPECT_EQ(t5_bucket(distance[i], false, 32, 128), one[i]) << distance[i];
  }
}

}  // namespace
}  // namespace cyb
