// SPDX-License-Identifier: Apache-2.0
#include "text/regex.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

std::vector<std::string> pieces(std::string_view pattern, std::string_view text) {
  std::vector<TextRegex::Match> matches;
  TextRegex(pattern).find_all(text, &matches);
  std::vector<std::string> out;
  for (auto [begin, end] : matches) out.emplace_back(text.substr(begin, end - begin));
  return out;
}
using List = std::vector<std::string>;

TEST(Regex, RunsTheUsualPatterns) {
  const char* gpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
  EXPECT_EQ(pieces(gpt2, "I'm  here, 123!\n"), (List{"I", "'m", " ", " here", ",", " 123", "!", "\n"}));
  EXPECT_EQ(pieces(R"(\p{N}{1,3})", "1234567"), (List{"123", "456", "7"}));
  EXPECT_EQ(pieces(R"((?i:'s|'t))", "'S't'ſ"), (List{"'S", "'t", "'ſ"}));
}

TEST(Regex, FollowsOnigurumaWherePcreDiffers) {
  EXPECT_EQ(pieces(R"(\h+)", "beef xyz 12"), (List{"beef", "12"}));
  EXPECT_EQ(pieces(R"(a{1,2}+b)", "aaaab"), (List{"aaaab"}));  // a repetition of a repetition
  EXPECT_EQ(pieces(R"(a?+b)", "aab"), (List{"ab"}));           // possessive
  EXPECT_EQ(pieces(R"((?m)a.b)", "a\nb"), (List{"a\nb"}));
  EXPECT_EQ(pieces("a.b", "a\nb"), List{});
  EXPECT_EQ(pieces(R"(x(?i)a|b)", "xA xB b"),
            (List{"xA", "xB"}));                                   // the option reaches over the alternatives
  EXPECT_EQ(pieces(R"(\p{Han}+)", "中、文"), (List{"中", "文"}));  // script, not script extensions
  EXPECT_EQ(pieces(R"(\s)", "\u180e\u00a0"), List{"\u00a0"});
  EXPECT_EQ(pieces(R"(^a|b$)", "a\na b\nb"), (List{"a", "a", "b", "b"}));
  EXPECT_EQ(pieces(R"(\bé)", "é aé"), List{"é"});
}

TEST(Regex, ReadsNestedAndIntersectedSets) {
  EXPECT_EQ(pieces(R"([\p{L}&&[^\p{Han}]]+)", "ab中cd"), (List{"ab", "cd"}));
  EXPECT_EQ(pieces(R"([^\p{L}&&[^\p{Han}]]+)", "ab中cd "), (List{"中", " "}));
  EXPECT_EQ(pieces(R"([a[bc]d]+)", "abcde"), List{"abcd"});
  EXPECT_EQ(pieces(R"( ?[^(\s|[.,!?…。，、।۔،])]+)", "a b.c|d (e"), (List{"a", " b", "c", "d", "e"}));
  EXPECT_EQ(pieces(R"([\]\-a]+)", "]-ab"), List{"]-a"});
}

TEST(Regex, GivesEmptyMatchesAndEndsThere) {
  std::vector<TextRegex::Match> matches;
  TextRegex("x*").find_all("aé", &matches);
  EXPECT_EQ(matches, (std::vector<TextRegex::Match>{{0, 0}, {1, 1}, {3, 3}}));
}

TEST(Regex, NamesWhatItCannotRun) {
  for (const char* pattern :
       {"(", "a)", "[a", "[]", R"(\k<x>)", R"(\X)", R"(\p{L)", R"(\p{NoSuchScript})", "(?z:a)", "a**{"}) {
    try {
      TextRegex regex(pattern);
      if (std::string_view(pattern) == "a**{") continue;  // valid there, too
      FAIL() << pattern;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Tokenizer);
      EXPECT_NE(e.message().find("regular expression"), std::string::npos);
    }
  }
  EXPECT_THROW(TextRegex(std::string(300, '(') + std::string(300, ')')), Error);
}

// A megabyte without any place to cut: the JIT's stack and the limits must suffice, and no match may be lost.
TEST(Regex, SurvivesLongRuns) {
  const char* llama3 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  TextRegex regex(llama3);
  for (const char* unit : {"a", " ", "\n", "!", "é", "中", " \n"}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    std::vector<TextRegex::Match> matches;
    regex.find_all(text, &matches);
    ASSERT_FALSE(matches.empty());
    EXPECT_EQ(matches.front().first, 0u);
    EXPECT_EQ(matches.back().second, text.size());
  }
  TextRegex grouped(R"((?:a|b)+c|.+)");
  std::string text(1 << 20, 'a');
  std::vector<TextRegex::Match> matches;
  grouped.find_all(text, &matches);
  ASSERT_EQ(matches.size(), 1u);
}

TEST(Regex, GivesUpWithAnErrorAndNotWithNoMatch) {
  TextRegex regex(R"((?:a+)+$)");
  std::vector<TextRegex::Match> matches;
  EXPECT_THROW(regex.find_all(std::string(60, 'a') + "b", &matches), Error);
}

// Each code point must be in exactly the classes that the reference's expressions see.
TEST(Regex, ClassifiesEveryCodePointAsTheReference) {
  std::istringstream file(
      read_file(std::string(CYB_SOURCE_DIR) + "/tests/data/tokenizer/unicode_classes.txt"));
  std::string all;
  for (char32_t c = 0; c < 0x110000; ++c)
    if (c < 0xD800 || c >= 0xE000) utf8_append(&all, c);
  int classes = 0;
  for (std::string line; std::getline(file, line); ++classes) {
    std::istringstream fields(line);
    std::string pattern, range;
    fields >> pattern;
    std::vector<bool> expected(0x110000);
    while (fields >> range) {
      size_t dash = range.find('-');
      auto first = std::stoul(range, nullptr, 16);
      auto last = dash == std::string::npos ? first : std::stoul(range.substr(dash + 1), nullptr, 16);
      for (auto c = first; c <= last; ++c) expected[c] = true;
    }
    std::vector<TextRegex::Match> matches;
    TextRegex(pattern).find_all(all, &matches);
    size_t wrong = 0, next = 0;
    for (size_t i = 0; i < all.size();) {
      size_t at = i;
      char32_t c = utf8_next(all, &i);
      bool found = next < matches.size() && matches[next].first == at;
      if (found) ++next;
      if (found != expected[c] && ++wrong <= 3) ADD_FAILURE() << pattern << " and code point " << uint32_t{c};
    }
    EXPECT_EQ(wrong, 0u) << pattern;
  }
  EXPECT_EQ(classes, 17);
}

TEST(Unicode, NormalizesAndLowersAsTheReference) {
  EXPECT_EQ(unicode_normalize("e\u0301", NormalForm::nfc), "é");
  EXPECT_EQ(unicode_normalize("é", NormalForm::nfd), "e\u0301");
  EXPECT_EQ(unicode_normalize("ﬁ①", NormalForm::nfkc), "fi1");
  EXPECT_EQ(unicode_normalize("㋿", NormalForm::nfkc), "㋿");  // too new for the reference
  std::string out;
  for (char32_t c : U"İÀΣẞ") append_lower(&out, c);
  EXPECT_EQ(out, std::string("i\u0307àσß\0", 10));
}

TEST(Unicode, FindsGraphemes) {
  EXPECT_EQ(grapheme_length("ab"), 1u);
  EXPECT_EQ(grapheme_length("\r\nx"), 2u);
  EXPECT_EQ(grapheme_length("e\u0301x"), 3u);
  EXPECT_EQ(grapheme_length("👨‍👩‍👧x"), std::string("👨‍👩‍👧").size());
  EXPECT_EQ(grapheme_length("🇩🇪🇫🇷"), std::string("🇩🇪").size());
}

}  // namespace
}  // namespace cyb
