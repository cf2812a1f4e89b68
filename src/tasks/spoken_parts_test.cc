// SPDX-License-Identifier: Apache-2.0
#include "tasks/spoken_parts.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

TEST(SpokenParts, TimesAreThoseOfTheWholeRecording) {
  std::vector<float> samples(1000);
  for (size_t i = 0; i < samples.size(); i++) samples[i] = static_cast<float>(i);
  SampleStore whole;
  whole.append(samples);
  const SpokenParts parts(whole, {{100, 300}, {600, 700}, {950, 2000}}, 100);
  ASSERT_EQ(parts.samples().size(), 350u);
  EXPECT_EQ(parts.samples()[0], 100);
  EXPECT_EQ(parts.samples()[200], 600);
  EXPECT_EQ(parts.samples()[349], 999);

  SpokenSegment s;
  s.start = 0.5, s.end = 2.0;  // ends where the first part does
  parts.restore(&s);
  EXPECT_DOUBLE_EQ(s.start, 1.5);
  EXPECT_DOUBLE_EQ(s.end, 3.0);
  s.start = 2.0, s.end = 3.2;
  parts.restore(&s);
  EXPECT_DOUBLE_EQ(s.start, 6.0);
  EXPECT_DOUBLE_EQ(s.end, 9.7);

  // A word that reaches over a gap stays in the part of its middle.
  s.words = {{" a", 1.5, 2.1, 1}, {" b", 2.1, 2.9, 1}};
  parts.restore(&s);
  EXPECT_DOUBLE_EQ(s.words[0].start, 2.5);
  EXPECT_DOUBLE_EQ(s.words[0].end, 3.1);
  EXPECT_DOUBLE_EQ(s.words[1].start, 6.1);
  EXPECT_DOUBLE_EQ(s.start, 2.5);
  EXPECT_DOUBLE_EQ(s.end, 6.9);
}

TEST(SpokenParts, NobodySpeaks) {
  SampleStore whole;
  whole.append(std::vector<float>(10));
  const SpokenParts parts(whole, {}, 100);
  EXPECT_TRUE(parts.samples().empty());
  SpokenSegment s;
  s.start = 1;
  parts.restore(&s);
  EXPECT_EQ(s.start, 1);
}

}  // namespace
}  // namespace cyb
