// SPDX-License-Identifier: Apache-2.0
#include "tasks/beam_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cyb {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
using Ids = std::vector<int32_t>;

// What is left of ten equal scores after these tokens.
Ids allowed(const SearchOptions& o, const Ids& tokens, size_t prompt = 1) {
  std::vector<float> scores(10, 0.5f);
  apply_rules(o, {0, tokens, prompt}, scores);
  Ids out;
  for (int32_t i = 0; i < 10; i++)
    if (scores[static_cast<size_t>(i)] != kNever) out.push_back(i);
  return out;
}
Ids without(const Ids& gone) {
  Ids out;
  for (int32_t i = 0; i < 10; i++)
    if (std::find(gone.begin(), gone.end(), i) == gone.end()) out.push_back(i);
  return out;
}

TEST(SearchRules, EachExcludesWhatItSays) {
  SearchOptions o;
  o.eos = {2};
  o.max_length = 8;
  EXPECT_EQ(allowed(o, {0}), without({}));
  o.min_length = 3;
  EXPECT_EQ(allowed(o, {0, 4}), without({2}));
  EXPECT_EQ(allowed(o, {0, 4, 5}), without({}));
  o.min_new_tokens = 3;
  EXPECT_EQ(allowed(o, {0, 4, 5}), without({2}));
  o = {};
  o.no_repeat_ngram = 2;
  EXPECT_EQ(allowed(o, {1, 2, 3, 1, 4, 1}), without({2, 4}));
  o.no_repeat_ngram = 1;
  EXPECT_EQ(allowed(o, {1, 2}), without({1, 2}));
  o = {};
  o.encoder_no_repeat_ngram = 2;
  EXPECT_EQ(allowed(o, {1, 2}), without({}));
  o.sources = {{2, 3, 5, 2, 6}};
  EXPECT_EQ(allowed(o, {1, 2}), without({3, 6}));
  EXPECT_EQ(allowed(o, {1, 6}), without({}));
  o.encoder_no_repeat_ngram = 3;
  EXPECT_EQ(allowed(o, {2}), without({}));
  EXPECT_EQ(allowed(o, {7, 5, 2}), without({6}));
  o = {};
  o.bad_words = {{3}, {4, 5}, {6, 7, 8}, {9, 9, 9, 9}};
  EXPECT_EQ(allowed(o, {1, 4}), without({3, 5}));
  EXPECT_EQ(allowed(o, {6, 7, 4}), without({3, 5}));
  EXPECT_EQ(allowed(o, {4, 6, 7}), without({3, 8}));
  o = {};
  o.forced_bos = 6;
  o.forced_eos = {2};
  o.max_length = 4;
  o.suppress = {7};
  o.begin_suppress = {8};
  EXPECT_EQ(allowed(o, {0}), Ids{6});
  EXPECT_EQ(allowed(o, {0, 6}), without({7, 8}));
  EXPECT_EQ(allowed(o, {0, 6, 1}), Ids{2});
  EXPECT_EQ(allowed(o, {0, 1}, 2), without({7, 8}));
}

TEST(SearchRules, RepetitionCountsEachTokenOnce) {
  SearchOptions o;
  o.repetition_penalty = 2;
  std::vector<float> scores = {1, -1, 4, 3};
  apply_rules(o, {0, Ids{0, 1, 1, 2, 2}, 1}, scores);
  EXPECT_EQ(scores, (std::vector<float>{0.5f, -2, 2, 3}));
}

TEST(LogSoftmax, IsTheLogOfProbabilities) {
  std::vector<float> x;
  for (int i = 0; i < 3001; i++) x.push_back(static_cast<float>(std::sin(i * 1.7) * 20 - i % 7));
  x[5] = kNever;
  x[6] = -500;
  double sum = 0;
  for (const float v : x) sum += std::exp(static_cast<double>(v));
  std::vector<float> y = x;
  log_softmax(y);
  for (size_t i = 0; i < x.size(); i++) {
    if (i == 5) continue;
    const double wanted = x[i] - std::log(sum);
    EXPECT_NEAR(y[i], wanted, 4e-6 * std::max(1.0, std::abs(wanted)));
  }
  EXPECT_EQ(y[5], kNever);
}

// Two beams over three tokens, 0 ends: by hand.
TEST(Beams, KeepTheBestAndDivideByTheLength) {
  SearchOptions o;
  o.beams = o.results = 2;
  o.max_length = 4;
  o.eos = {0};
  o.length_penalty = 1;
  const Ids prompt = {1};
  Beams b(o, prompt);
  b.advance(std::vector<float>{-3, -1, -2, -3, -1, -2});
  EXPECT_EQ(Ids(b.tokens(0).begin(), b.tokens(0).end()), (Ids{1, 1}));
  EXPECT_EQ(Ids(b.tokens(1).begin(), b.tokens(1).end()), (Ids{1, 2}));
  EXPECT_EQ(b.parent(1), 0);
  b.advance(std::vector<float>{-0.5f, -4, -5, -9, -0.25f, -9});  // the first ends; the second goes on
  EXPECT_FALSE(b.done());
  EXPECT_EQ(Ids(b.tokens(0).begin(), b.tokens(0).end()), (Ids{1, 2, 1}));
  EXPECT_EQ(b.parent(0), 1);
  b.advance(std::vector<float>{-0.125f, -7, -8, -7, -7, -7});  // the last position
  EXPECT_TRUE(b.done());
  const auto r = b.results();
  ASSERT_EQ(r.size(), 2u);
  EXPECT_EQ(r[0].tokens, (Ids{1, 0}));
  EXPECT_FLOAT_EQ(r[0].score, -1.5f / 2);
  EXPECT_TRUE(r[0].finished);
  EXPECT_EQ(r[1].tokens, (Ids{2, 1, 0}));
  EXPECT_FLOAT_EQ(r[1].score, -2.375f / 3);
  EXPECT_FLOAT_EQ(r[1].log_prob, -2.375f);
}

}  // namespace
}  // namespace cyb
