// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer_spec.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

TokenizerSpec sample() {
  TokenizerSpec s;
  for (const char* token : {"<s>", "a", "b", "ab", "", "quote\" back\\slash", "line\nfeed\ttab\rcr",
                            "\x01\x1f\x7f", "▁é中😀", "~~~weights", "[tokens]", "# 1"})
    s.tokens.push_back(token);
  s.merges.push_back("a");
  s.merges.push_back("b");
  s.scores = {0, -1.5, -3.4629864692687988, -1e-300, 1.0 / 3};
  s.added = {{0, true, false, false, false, false}, {3, false, true, true, true, true, true}, {5}};
  s.byte_fallback = s.fuse_unk = s.ignore_merges = true;
  s.continuing_prefix = "##";
  s.end_suffix = "</w>";
  s.unk = 1;
  s.first_unlisted = 11;
  s.bos = s.pad = 0;
  s.normalizer = {{"Replace", {{"pattern", " "}, {"content", "▁\n\""}}}, {"NFC", {}}};
  s.pre_tokenizer = {{"Split", {{"regex", R"(\s+|[^\r\n"])"}, {"invert", false}}}};
  s.post_processor = {
      {"TemplateProcessing",
       {{"single", std::vector<std::string>{"<s>:0", "$A:0"}}, {"pair", std::vector<std::string>{}}}}};
  s.decoder = {{"Strip", {{"content", " "}, {"start", int64_t{1}}, {"stop", int64_t{-2}}}}};
  return s;
}

TEST(TokenizerSpec, ReadsBackWhatItWrote) {
  TokenizerSpec s = sample();
  std::string text = write_vocab(s);
  EXPECT_EQ(read_vocab(text), s);
  EXPECT_EQ(write_vocab(read_vocab(text)), text);
}

TEST(TokenizerSpec, KeepsScoresExactly) {
  TokenizerSpec s;
  for (uint32_t bits = 0xC0000000; bits < 0xC0000400; ++bits) {
    float score;
    memcpy(&score, &bits, 4);
    s.tokens.push_back("x" + std::to_string(bits));
    s.scores.push_back(score);
  }
  EXPECT_EQ(read_vocab(write_vocab(s)).scores, s.scores);
}

TEST(TokenizerSpec, IsReadableText) {
  std::string text = write_vocab(sample());
  for (const char* line : {"[model]\ntype = \"BPE\"\n", "\n[tokens]\n0 = \"<s>\"\n1 = \"a\"\n",
                           "\n[merges]\n0 = [\"a\", \"b\"]\n", "\n[scores]\n0 = \"0\"\n1 = \"-1.5\"\n",
                           "\n[special]\n0 = { special = true }\n",
                           "\n[[normalizer]]\ntype = \"Replace\"\npattern = \" \"\n", "5 = {}\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(TokenizerSpec, TakesLineEndsCommentsAndGaps) {
  TokenizerSpec s =
      read_vocab("# made by hand\r\n[model]\r\ntype = \"WordPiece\"\r\n\r\n[tokens]\r\n2 = \"x\" # last\r\n");
  EXPECT_EQ(s.model, TokenizerModel::wordpiece);
  ASSERT_EQ(s.tokens.size(), 3u);
  EXPECT_EQ(s.tokens[0], "");
  EXPECT_EQ(s.tokens[2], "x");
}

TEST(TokenizerSpec, NamesTheLineOfWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"0 = \"a\"\n", "line 1"},
      {"[tokens]\n0 = \"a\n", "line 2"},
      {"[tokens]\n0 = \"a\"\n0 = \"b\"\n", "line 3"},
      {"[tokens]\n99999999 = \"a\"\n", "line 2"},
      {"[tokens]\n-1 = \"a\"\n", "line 2"},
      {"[tokens]\n0 = \"\\q\"\n", "line 2"},
      {"[tokens]\n0 = \"\\ud800\"\n", "line 2"},
      {"[tokens]\n0 = \"\\u12\"\n", "line 2"},
      {"[tokens]\n0 = \"a\" 1\n", "line 2"},
      {"[merges]\n1 = [\"a\", \"b\"]\n", "line 2"},
      {"[merges]\n0 = [\"a\"]\n", "line 2"},
      {"[scores]\n0 = \"x\"\n", "line 2"},
      {"[scores]\n0 = \"1.0y\"\n", "line 2"},
      {"[special]\n0 = { loud = true }\n", "line 2"},
      {"[model]\ntype = \"Magic\"\n", "Magic"},
      {"[model]\ncolour = true\n", "colour"},
      {"[unknown]\n", "line 1"},
      {"[[normalizer]]\npattern = \"a\"\n", "no type"},
      {"[tokens]\n0 = \"a\"\n[special]\n1 = {}\n", "token 1"},
      {"[model]\nbos = 7\n[tokens]\n0 = \"a\"\n", "token 7"},
      {"[tokens]\n0 = \"a\"\n[scores]\n0 = \"1\"\n1 = \"2\"\n", "2 scores"},
  };
  for (auto& [text, expected] : cases) {
    try {
      read_vocab(text);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(expected), std::string::npos) << e.message();
      EXPECT_FALSE(e.advice().empty());
    }
  }
}

TEST(TokenizerSpec, SurvivesEveryTruncation) {
  std::string text = write_vocab(sample());
  for (size_t n = 0; n < text.size(); ++n) {
    try {
      read_vocab(text.substr(0, n));
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace cyb
