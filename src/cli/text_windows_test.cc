// SPDX-License-Identifier: Apache-2.0
#include "cli/text_windows.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

using Pieces = std::vector<std::vector<int32_t>>;

TEST(TextWindows, every_piece_begins_as_the_text_does) {
  const std::vector<int32_t> ids = {2, 10, 11, 12, 13, 14};
  EXPECT_EQ(text_windows(ids, 3, 2), (Pieces{{2, 10, 11}, {2, 12, 13}, {2, 14}}));
  EXPECT_EQ(text_windows(ids, 100, 2), (Pieces{{2, 10, 11, 12, 13, 14}}));
  EXPECT_EQ(text_windows(ids, 2, 2).size(), 5u);
}

TEST(TextWindows, without_a_first_token_pieces_are_the_text_cut) {
  const std::vector<int32_t> ids = {10, 11, 12, 13, 14};
  EXPECT_EQ(text_windows(ids, 2, std::nullopt), (Pieces{{10, 11}, {12, 13}}));
  EXPECT_EQ(text_windows(ids, 3, std::nullopt), (Pieces{{10, 11, 12}, {13, 14}}));
  EXPECT_TRUE(text_windows({}, 3, 2).empty());
}

}  // namespace
}  // namespace cyb
