// SPDX-License-Identifier: Apache-2.0
#include "runtime/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <set>

#include "base/philox.h"

namespace cyb {
namespace {

const float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

// The definition: everything is sorted, and the list is cut by one rule after the other.
int32_t plain_sample(const SamplerSettings& s, std::vector<float> logits, const std::vector<int32_t>& history,
                     uint64_t drawn) {
  const size_t seen =
      s.penalty_window > 0 ? std::min(history.size(), static_cast<size_t>(s.penalty_window)) : history.size();
  std::map<int32_t, int> counts;
  for (size_t i = history.size() - seen; i < history.size(); i++) counts[history[i]]++;
  const bool penalties = s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
  for (const auto& [id, count] : counts) {
    if (!penalties || id < 0 || static_cast<size_t>(id) >= logits.size()) continue;
    float& l = logits[static_cast<size_t>(id)];
    l = static_cast<float>(l > 0 ? l / s.repetition_penalty : l * s.repetition_penalty);
    l -= static_cast<float>(s.presence_penalty + s.frequency_penalty * count);
  }
  std::vector<int32_t> order;
  for (size_t i = 0; i < logits.size(); i++)
    if (!std::isnan(logits[i])) order.push_back(static_cast<int32_t>(i));
  if (order.empty()) return 0;
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return logit(a) > logit(b); });
  const float top = logit(order[0]);
  if (s.temperature <= 0 || s.top_k == 1 || !std::isfinite(top)) return order[0];
  std::vector<float> shares;
  Sampler::shares(logits, top, s.temperature, shares);
  const auto weight = [&](size_t i) { return Sampler::weight(shares[static_cast<size_t>(order[i])]); };
  if (s.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(s.top_k)));
  int64_t total = 0;
  for (size_t i = 0; i < order.size(); i++) total += weight(i);
  if (s.top_p < 1) {
    int64_t sum = weight(0);
    size_t n = 1;
    while (n < order.size() && static_cast<double>(sum) < s.top_p * static_cast<double>(total))
      sum += weight(n++);
    order.resize(n);
  }
  if (s.min_p > 0) {
    size_t n = 1;
    while (n < order.size() &&
           static_cast<double>(logit(order[n])) >= top + s.temperature * std::log(s.min_p))
      n++;
    order.resize(n);
  }
  total = 0;
  for (size_t i = 0; i < order.size(); i++) total += weight(i);
  auto left = static_cast<int64_t>(philox_uniform(s.seed, drawn) * static_cast<double>(total));
  size_t i = 0;
  while (i + 1 < order.size() && left >= weight(i)) left -= weight(i++);
  return order[i];
}

// Kinds: peaked as a model's, flat, of few values (ties), with holes.
std::vector<float> random_logits(size_t n, int kind, std::mt19937& random) {
  std::normal_distribution<float> normal(0, kind == 1 ? 0.01f : 3);
  std::vector<float> v(n);
  for (float& l : v) {
    l = normal(random);
    if (kind == 2) l = std::round(l);
    if (kind == 3 && random() % 4 == 0) l = -kInf;
    if (kind == 3 && random() % 50 == 0) l = kNan;
  }
  for (int i = 0; kind == 0 && i < 8; i++) v[random() % n] += 10;
  return v;
}

void expect_twins(const SamplerSettings& s, const std::vector<float>& logits,
                  const std::vector<int32_t>& history, uint64_t draws = 3) {
  Sampler sampler(s);
  for (uint64_t drawn = 0; drawn < draws; drawn++) {
    std::vector<float> copy = logits;
    ASSERT_EQ(sampler.sample(copy, history), plain_sample(s, logits, history, drawn))
        << "temperature " << s.temperature << ", top-k " << s.top_k << ", top-p " << s.top_p << ", min-p "
        << s.min_p << ", penalty " << s.repetition_penalty << ", " << logits.size() << " logits, draw "
        << drawn;
  }
}

TEST(Sampler, DrawsWhatSortingEverythingDraws) {
  std::mt19937 random(5);
  for (size_t n : {1, 2, 33, 1500})
    for (int kind = 0; kind < 4; kind++) {
      const std::vector<float> logits = random_logits(n, kind, random);
      std::vector<int32_t> history;
      for (int i = 0; i < 300; i++) history.push_back(static_cast<int32_t>(random() % (n + 5)) - 2);
      for (double temperature : {0.0, 1e-6, 0.3, 1.0, 2.5, 1e6})
        for (int64_t k : {0, 1, 2, 40, 500})
          for (double p : {1.0, 0.95, 0.5, 0.0})
            for (double min_p : {0.0, 0.05, 1.0}) {
              SamplerSettings s;
              s.temperature = temperature;
              s.top_k = k;
              s.top_p = p;
              s.min_p = min_p;
              s.seed = random();
              if (random() % 2)
                s.repetition_penalty = 1.2, s.presence_penalty = 0.3, s.frequency_penalty = 0.1;
              if (random() % 2) s.penalty_window = 64;
              expect_twins(s, logits, history);
            }
    }
}

TEST(Sampler, LargeVocabularies) {
  std::mt19937 random(6);
  for (int kind = 0; kind < 4; kind++) {
    const std::vector<float> logits = random_logits(262144, kind, random);
    for (int64_t k : {0, 64})
      for (double p : {1.0, 0.95})
        for (double min_p : {0.0, 0.05}) {
          SamplerSettings s;
          s.temperature = 1;
          s.top_k = k;
          s.top_p = p;
          s.min_p = min_p;
          s.seed = random();
          expect_twins(s, logits, {}, 1);
        }
  }
}

TEST(Sampler, TheTopsShareIsOne) {
  std::vector<float> shares;
  for (double temperature : {1e-300, 0.7, 1e300}) {
    Sampler::shares(std::vector<float>{-7.5f, 3.25f, kNan, -kInf}, 3.25f, temperature, shares);
    EXPECT_EQ(shares[1], 1);
    EXPECT_EQ(Sampler::weight(shares[2]), 0);
    EXPECT_GE(Sampler::weight(shares[3]), 0);
  }
  EXPECT_EQ(Sampler::weight(1), int64_t{1} << 40);
}

// Frequencies of draws are the probabilities.
TEST(Sampler, DrawsByProbability) {
  SamplerSettings s;
  s.temperature = 1;
  Sampler sampler(s);
  const std::vector<float> logits = {0, std::log(2.0f), std::log(5.0f)};
  int counts[3] = {};
  for (int i = 0; i < 16000; i++) {
    std::vector<float> copy = logits;
    counts[sampler.sample(copy, {})]++;
  }
  EXPECT_NEAR(counts[0], 2000, 200);
  EXPECT_NEAR(counts[1], 4000, 250);
  EXPECT_NEAR(counts[2], 10000, 300);
}

TEST(Sampler, LogitsThatAreNotFinite) {
  SamplerSettings s;
  for (double temperature : {0.0, 1.0}) {
    s.temperature = temperature;
    const auto draw = [&](std::vector<float> logits) { return Sampler(s).sample(logits, {}); };
    EXPECT_EQ(draw({kNan, kNan}), 0);
    EXPECT_EQ(draw({kNan, -kInf, -kInf}), 1);
    EXPECT_EQ(draw({1, kInf, kInf}), 1);
    EXPECT_EQ(draw({kNan, 2, -kInf}), 1);
  }
}

}  // namespace
}  // namespace cyb
