// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_bar.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

TEST(Human, bytes_counts_and_times) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(98362432), "98.4 MB");
  EXPECT_EQ(human_bytes(1234567890), "1.23 GB");
  EXPECT_EQ(human_count(134515008), "135 M");
  EXPECT_EQ(human_count(7615616512), "7.6 B");
  EXPECT_EQ(human_count(999999999), "1.0 B");
  EXPECT_EQ(human_count(12), "12");
  EXPECT_EQ(human_seconds(8.4), "8 s");
  EXPECT_EQ(human_seconds(200), "3 min 20 s");
  EXPECT_EQ(human_seconds(7500), "2 h 05 min");
  EXPECT_EQ(human_seconds(1.0 / 0.0), "long");
}

TEST(ProgressBar, the_line_fits_and_shows_share_rate_and_time_left) {
  const ProgressBar bar;
  for (const int columns : {20, 40, 60, 80, 200})
    for (const uint64_t total : {uint64_t{0}, uint64_t{100000000}})
      EXPECT_LT(bar.line("a-rather-long-file-name-that-is-cut.gguf", 50000000, total, 5e6, columns).size(),
                static_cast<size_t>(std::max(columns, 21)));
  const std::string line = bar.line("m.gguf", 50000000, 100000000, 5e6, 100);
  for (const char* part : {"m.gguf", " 50%", "50.0 MB / 100.0 MB", "5.0 MB/s", "10 s left"})
    EXPECT_NE(line.find(part), std::string::npos) << line;
}

}  // namespace
}  // namespace cyb
