// SPDX-License-Identifier: Apache-2.0
#include "tasks/word_times.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

constexpr int32_t kEnd = 100;

// Words of one token each, from positions.
std::vector<TimedWord> words_at(std::initializer_list<std::pair<int64_t, int64_t>> places) {
  std::vector<TimedWord> out;
  for (const auto& [from, to] : places) {
    TimedWord w;
    w.text = " w";
    w.tokens = {1};
    w.start = position_seconds(from);
    w.end = position_seconds(to);
    out.push_back(w);
  }
  return out;
}

SpokenSegment segment(double start, double end, size_t words) {
  SpokenSegment s;
  s.start = start;
  s.end = end;
  s.tokens.assign(words, 1);
  return s;
}

TEST(WordTimes, PositionsAreQuotients) {
  EXPECT_EQ(position_seconds(35), 0.7);
  EXPECT_EQ(position_seconds(57), 1.14);  // 57 · 0.02 is another number
}

// The usual word takes 0.3 s, and the first one ends 1.2 s after the last one before: no more than four times
// as much, but one part in 2^52 would make it more, and the second word would be cut to 0.6 s.
TEST(WordTimes, TiesAreNoPauses) {
  SpokenSegment s = segment(11.64, 14, 5);
  SpokenSegment* all[] = {&s};
  double last = 10.72;
  put_words(words_at({{582, 596}, {596, 654}, {654, 669}, {669, 684}, {684, 699}}), 0, all, kEnd, &last);
  ASSERT_EQ(s.words.size(), 5u);
  EXPECT_EQ(s.words[0].start, 11.64);
  EXPECT_EQ(s.words[1].start, 11.92);
  last = 10.7;
  s.words.clear();
  put_words(words_at({{582, 596}, {596, 654}, {654, 669}, {669, 684}, {684, 699}}), 0, all, kEnd, &last);
  EXPECT_NEAR(s.words[1].start, 12.48, 1e-9);
}

// A last word may be held longer than its segment: the next pause is counted from it.
TEST(WordTimes, TheLastWordEndsTheWindow) {
  SpokenSegment s = segment(0, 1.1, 2), none = segment(1.1, 5, 0);
  SpokenSegment* all[] = {&s, &none};
  double last = 0;
  put_words(words_at({{0, 50}, {50, 150}}), 0, all, kEnd, &last);
  EXPECT_EQ(s.end, 1.1);
  EXPECT_EQ(s.words[1].end, 1.7);
  EXPECT_EQ(last, 1.7);
  SpokenSegment* silent[] = {&none};
  EXPECT_EQ(last_end(silent), 5);
  EXPECT_EQ(last_end({}), std::nullopt);
}

}  // namespace
}  // namespace cyb
