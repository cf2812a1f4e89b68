// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

TEST(Utf8, WritesAndReadsEveryLength) {
  for (char32_t c : {U'\0', U'a', char32_t{0x7F}, char32_t{0x80}, char32_t{0x7FF}, char32_t{0x800},
                     char32_t{0xFFFF}, char32_t{0x10000}, char32_t{0x10FFFF}}) {
    std::string text;
    utf8_append(&text, c);
    EXPECT_EQ(utf8_length(text[0]), text.size());
    size_t pos = 0;
    EXPECT_EQ(utf8_next(text, &pos), c);
    EXPECT_EQ(pos, text.size());
    EXPECT_EQ(utf8_previous(text, text.size()), 0u);
    EXPECT_TRUE(utf8_valid(text));
  }
}

// The right sides are Python's bytes.decode("utf-8", "replace").
TEST(Utf8, ReplacesEachMaximalInvalidPart) {
  const std::string r = "\uFFFD";
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"plain ascii, long enough for words", "plain ascii, long enough for words"},
      {"\xFF", r},
      {"a\xC3", "a" + r},
      {"\xC3(", r + "("},
      {"\xE2\x96", r},
      {"\xE2\x96x", r + "x"},
      {"\xF0\x9F\x98", r},
      {"\xF0\x9F\x98\xFF", r + r},
      {"\xC0\x80", r + r},
      {"\xED\xA0\x80", r + r + r},
      {"\xF4\x90\x80\x80", r + r + r + r},
      {"\xE0\x80\xAF", r + r + r},
      {"ok \x80\x81 ok", "ok " + r + r + " ok"},
      {"\xE4\xB8\xAD\xE6\x96", "中" + r},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(utf8_sanitize(bytes), text);
    EXPECT_EQ(utf8_valid(bytes), bytes == text);
  }
}

TEST(Utf8, TellsIncompleteFromInvalid) {
  EXPECT_TRUE(utf8_prefix("\xE2\x96").incomplete);
  EXPECT_TRUE(utf8_prefix("\xF0").incomplete);
  EXPECT_FALSE(utf8_prefix("\xE2\x96x").incomplete);
  EXPECT_FALSE(utf8_prefix("\xF5").incomplete);
  EXPECT_EQ(utf8_prefix("\xE2\x96x").length, 2u);
}

}  // namespace
}  // namespace cyb
