// SPDX-License-Identifier: Apache-2.0
#include "hub/partial.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

TEST(ContentRange, is_read_strictly) {
  auto range = parse_content_range("bytes 5-9/10");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5u);
  EXPECT_EQ(range->last, 9u);
  EXPECT_EQ(range->total, 10u);
  range = parse_content_range("Bytes 0-0/*");
  ASSERT_TRUE(range);
  EXPECT_FALSE(range->total);
  range = parse_content_range("bytes */7");
  ASSERT_TRUE(range);
  EXPECT_FALSE(range->first);
  EXPECT_EQ(range->total, 7u);
  for (const char* text :
       {"", "bytes", "bytes 5-9", "bytes 9-5/10", "bytes 5-10/10", "bytes -5/10", "bytes 5-/10", "bytes */*",
        "items 5-9/10", "bytes 5-9/ 10", "bytes 5-99999999999999999999/*", "bytes +5-9/10"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

TEST(RangeValidator, weak_tags_do_not_count) {
  EXPECT_EQ(range_validator("\"abc\"", "date"), "\"abc\"");
  EXPECT_EQ(range_validator("W/\"abc\"", "date"), "date");
  EXPECT_EQ(range_validator("", ""), "");
  EXPECT_EQ(range_validator("\"\"", ""), "");
}

TEST(Sha256OfEtag, only_digests_count) {
  const std::string digest(64, 'C');
  for (const std::string& text : {digest, "\"" + digest + "\"", "W/\"" + digest + "\""})
    EXPECT_EQ(sha256_of_etag(text), std::string(64, 'c')) << text;
  EXPECT_EQ(sha256_of_etag("\"" + std::string(40, 'c') + "\""), "");
  EXPECT_EQ(sha256_of_etag(std::string(64, 'g')), "");
}

TEST(Size, is_a_plain_number) {
  EXPECT_EQ(parse_size("12"), 12u);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x1", "99999999999999999999"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(PartialState, reads_back_and_refuses_the_rest) {
  PartialState state{.url = "http://h/ä", .validator = "\"x\"", .sha256 = "", .size = 7, .synced = 3};
  const auto back = parse_partial_state(print_partial_state(state));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->url, state.url);
  EXPECT_EQ(back->validator, state.validator);
  EXPECT_EQ(back->size, 7u);
  EXPECT_EQ(back->synced, 3u);
  state.size.reset();
  EXPECT_FALSE(parse_partial_state(print_partial_state(state))->size);
  for (const char* text : {"", "{}", "[]", R"({"url": 1, "validator": "", "sha256": "", "synced": 0})",
                           R"({"url": "", "validator": "", "sha256": "", "synced": -1})",
                           R"({"url": "", "validator": "", "sha256": "", "synced": 0, "size": "7"})"})
    EXPECT_FALSE(parse_partial_state(text)) << text;
}

}  // namespace
}  // namespace cyb
