// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "support/golden.h"
#include "support/golden_json.h"

namespace cyb::test {
namespace {

using nlohmann::json;

TEST(WeightGenerator, GivesTheBitsOfThePythonOne) {
  const json j = read_json(goldens_folder() + "/weightgen.json");
  ASSERT_GE(j.at("cases").size(), 5u);
  for (const json& c : j.at("cases")) {
    const json& t = c.at("tensor");
    const TensorRule rule{t.at("name").get<std::string>(), t.at("shape").get<std::vector<int64_t>>(),
                          t.at("base").get<float>(), t.at("scale").get<float>()};
    const auto expected = as_values<uint32_t>(decode_base64(c.at("values").get<std::string>()));
    const auto found = generate(c.at("seed").get<uint64_t>(), rule);
    ASSERT_EQ(found.size(), expected.size());
    EXPECT_EQ(0, std::memcmp(found.data(), expected.data(), found.size() * sizeof(float))) << rule.name;
  }
}

TEST(TinyGolden, EveryFileIsCompleteAndItsMarginsAreWideEnough) {
  const auto names = tiny_golden_names();
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const TinyGolden g = read_tiny_golden(name);
    EXPECT_EQ(g.name, name);
    EXPECT_TRUE(json::accept(g.config));
    EXPECT_GE(g.tensors.size(), 10u);
    ASSERT_FALSE(g.sequences.empty());
    for (const Sequence& s : g.sequences) {
      EXPECT_EQ(s.logits.columns, g.vocab);
      EXPECT_EQ(s.logits.values.size(), s.ids.size() * static_cast<size_t>(g.vocab));
      EXPECT_EQ(s.hidden.values.size(), s.ids.size() * static_cast<size_t>(s.hidden.columns));
      for (float v : s.logits.values) EXPECT_TRUE(std::isfinite(v));
    }
    EXPECT_EQ(g.greedy.tokens.size(), 64u);
    ASSERT_EQ(g.greedy.margins.size(), 64u);
    for (float m : g.greedy.margins) EXPECT_GE(m, 0.01f);
  }
}

TEST(TinyGolden, CheckpointHoldsEveryTensorWhereItsHeaderSays) {
  const TinyGolden g = read_tiny_golden("llama2");
  const std::string folder = testing::TempDir() + "/cyb_tiny_checkpoint";
  write_checkpoint(g, folder);
  EXPECT_EQ(read_file(folder + "/config.json"), g.config);
  const std::string bytes = read_file(folder + "/model.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const json header = json::parse(bytes.substr(8, length));
  EXPECT_EQ(header.size(), g.tensors.size() + 1);
  size_t end = 0;
  for (const TensorRule& rule : g.tensors) {
    const auto offsets = header.at(rule.name).at("data_offsets").get<std::vector<size_t>>();
    EXPECT_EQ(offsets[1] - offsets[0], static_cast<size_t>(rule.count()) * 4);
    const auto values = generate(g.seed, rule);
    EXPECT_EQ(0, std::memcmp(bytes.data() + 8 + length + offsets[0], values.data(), values.size() * 4));
    end = std::max(end, offsets[1]);
  }
  EXPECT_EQ(8 + length + end, bytes.size());
  const json vocab = json::parse(read_file(folder + "/tokenizer.json")).at("model").at("vocab");
  EXPECT_EQ(vocab.size(), static_cast<size_t>(g.vocab));
  EXPECT_THROW(write_checkpoint(g, folder, true), Error) << "llama2 has no older config";
  std::filesystem::remove_all(folder);
}

TEST(RealGolden, FilesAreCompleteAndConsistent) {
  const auto names = real_golden_names();
  EXPECT_GE(names.size(), 2u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const RealGolden g = read_real_golden(name);
    EXPECT_EQ(g.greedy.tokens.size(), 64u);
    ASSERT_EQ(g.greedy.margins.size(), 64u);
    for (float m : g.greedy.margins) EXPECT_GE(m, 0.01f);
    EXPECT_EQ(g.logit_positions.size(), 16u);
    // The stored logits and the greedy tokens come from different runs of the reference and must agree.
    const auto prompt = static_cast<int32_t>(g.greedy.prompt.size());
    for (size_t i = 0; i < g.logit_positions.size(); ++i) {
      if (g.logit_positions[i] < prompt - 1) continue;
      const float* row = g.logits.row(static_cast<int64_t>(i));
      EXPECT_EQ(std::max_element(row, row + g.vocab) - row,
                g.greedy.tokens[static_cast<size_t>(g.logit_positions[i] - prompt + 1)]);
    }
    EXPECT_GE(g.text_ids.size(), 1900u);
    ASSERT_EQ(g.text_top.size() + 1, g.text_ids.size());
    for (size_t p = 0; p < g.text_top.size(); ++p) {
      const TopLogProbs& t = g.text_top[p];
      double mass = std::exp(static_cast<double>(t.rest));
      for (float l : t.log_prob) mass += std::exp(static_cast<double>(l));
      EXPECT_NEAR(mass, 1, 3e-4);
      EXPECT_TRUE(std::is_sorted(t.ids.begin(), t.ids.end()));
      EXPECT_EQ(t.tail_ids.size(), 64u);
      const auto found = std::find(t.ids.begin(), t.ids.end(), g.text_ids[p + 1]);
      if (found != t.ids.end()) {
        EXPECT_NEAR(t.log_prob[static_cast<size_t>(found - t.ids.begin())], g.text_log_likelihood[p], 3e-4);
      }
    }
  }
}

TEST(Measures, KlMatchesHandArithmetic) {
  // Reference: 0.5, 0.25 and a rest of 0.25 over two tokens; ours: 0.25, 0.25, 0.25, 0.25.
  TopLogProbs reference;
  reference.ids = {0, 2};
  reference.log_prob = {std::log(0.5f), std::log(0.25f)};
  reference.rest = std::log(0.25f);
  const float ours[4] = {1, 1, 1, 1};
  const double expected = 0.5 * std::log(2.0) + 0.25 * std::log(1.0) + 0.25 * std::log(0.25 / 0.5);
  EXPECT_NEAR(kl_on_partition(reference, ours, 4), expected, 1e-6);
  EXPECT_NEAR(log_probability(ours, 4, 3), std::log(0.25), 1e-12);
  // The rest as a sample of two tokens of 0.125 each: 0.25 · log(0.125 / 0.25).
  reference.tail_ids = {1, 3};
  reference.tail_log_prob = {std::log(0.125f), std::log(0.125f)};
  const double full = 0.5 * std::log(2.0) + 0.25 * std::log(1.0) + 0.25 * std::log(0.125 / 0.25);
  EXPECT_NEAR(kl_estimate(reference, ours, 4), full, 1e-6);
}

TEST(Measures, RowErrorIsRelativeToTheRowsLargestAndKeepsNan) {
  const float reference[3] = {1, -4, 2}, ours[3] = {1, -4.5f, 2}, broken[3] = {1, NAN, 2};
  EXPECT_DOUBLE_EQ(row_error(ours, reference, 3), 0.125);
  EXPECT_TRUE(std::isnan(row_error(broken, reference, 3)));
}

}  // namespace
}  // namespace cyb::test
