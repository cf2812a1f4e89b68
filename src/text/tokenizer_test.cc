// SPDX-License-Identifier: Apache-2.0
// Rules of the tokenizer on vocabularies of a few tokens; equality with the reference is tested in
// src/import.
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "base/error.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace cyb {
namespace {

using Ids = std::vector<int32_t>;

TokenizerSpec bpe(std::initializer_list<const char*> tokens, std::initializer_list<const char*> merges = {}) {
  TokenizerSpec s;
  for (const char* t : tokens) s.tokens.push_back(t);
  for (const char* m : merges) s.merges.push_back(m);
  return s;
}

// Letters, "ab", "abc"; <c> is a control token whose text merges could build, <u> a user-defined one.
TokenizerSpec sample() {
  TokenizerSpec s = bpe({"a", "b", "c", "<", ">", "ab", "abc", "<c", "<c>", "<u>", "u", " "},
                        {"a", "b", "ab", "c", "<", "c", "<c", ">"});
  AddedToken control, user;
  control.id = 8;
  control.special = true;
  user.id = 9;
  s.added = {control, user};
  s.bos = 8;
  s.post_processor = {{"TemplateProcessing",
                       {{"single", std::vector<std::string>{"<c>:0", "$A:0"}},
                        {"pair", std::vector<std::string>{"$A:0", "<c>:1", "$B:1"}}}}};
  s.decoder = {{"Fuse", {}}};
  return s;
}

TEST(Tokenizer, MergesByRank) {
  Tokenizer t(sample());
  EXPECT_EQ(t.encode("abcab", {false, false}), (Ids{6, 5}));
  EXPECT_EQ(t.encode("", {false, false}), Ids{});
  EXPECT_EQ(t.encode("", {}), Ids{8});
}

TEST(Tokenizer, ControlTokensComeOnlyFromParsing) {
  Tokenizer t(sample());
  EXPECT_EQ(t.encode("a<c>b", {true, false}), (Ids{0, 8, 1}));
  // As text it stays text, although merges lead to it.
  EXPECT_EQ(t.encode("a<c>b", {false, false}), (Ids{0, 7, 4, 1}));
  EXPECT_EQ(t.encode("a<u>b", {false, false}), (Ids{0, 9, 1}));
  EXPECT_EQ(t.encode("<c>", {false, true}), (Ids{8, 7, 4}));
}

TEST(Tokenizer, TellsRolesAndTemplates) {
  Tokenizer t(sample());
  EXPECT_EQ(t.size(), 12);
  EXPECT_EQ(t.bos(), 8);
  EXPECT_EQ(t.eos(), std::nullopt);
  EXPECT_TRUE(t.adds_bos());
  EXPECT_FALSE(t.adds_eos());
  EXPECT_TRUE(t.is_special(8));
  EXPECT_FALSE(t.is_special(9));
  EXPECT_FALSE(t.is_special(-1));
  EXPECT_EQ(t.token_text(9), "<u>");
  EXPECT_EQ(t.token_text(12), "");
  EXPECT_EQ(t.token_id("abc"), 6);
  EXPECT_EQ(t.token_id("zzz"), std::nullopt);
  auto pair = t.encode_pair("a", "b");
  EXPECT_EQ(pair.ids, (Ids{0, 8, 1}));
  EXPECT_EQ(pair.types, (Ids{0, 1, 1}));
}

TEST(Tokenizer, DecodesWhatItIsAskedFor) {
  Tokenizer t(sample());
  Ids ids = {8, 6, 9, 99, -5, 0};
  EXPECT_EQ(t.decode(ids), "abc<u>a");
  EXPECT_EQ(t.decode(ids, {false, false}), "<c>abc<u>a");
}

TEST(Tokenizer, ReadsBrokenUtf8AsReplacementCharacters) {
  TokenizerSpec s = bpe({"a", "\uFFFD"});
  EXPECT_EQ(Tokenizer(std::move(s)).encode("a\xE2\x96\xFF", {}), (Ids{0, 1, 1}));
}

// sample() with the 256 byte tokens behind.
TokenizerSpec with_bytes() {
  TokenizerSpec s;
  s.tokens.push_back("▁");
  s.tokens.push_back("▁x");
  s.tokens.push_back("x");
  for (int b = 0; b < 256; ++b) s.tokens.push_back(fmt::format("<0x{:02X}>", b));
  s.byte_fallback = true;
  s.normalizer = {{"Prepend", {{"prepend", "▁"}}}, {"Replace", {{"pattern", " "}, {"content", "▁"}}}};
  s.decoder = {{"Replace", {{"pattern", "▁"}, {"content", " "}}},
               {"ByteFallback", {}},
               {"Fuse", {}},
               {"Strip", {{"content", " "}, {"start", int64_t{1}}, {"stop", int64_t{0}}}}};
  return s;
}

TEST(StreamDecoder, HoldsBackOnlyIncompleteCharacters) {
  Tokenizer t(with_bytes());
  Ids ids = t.encode("x 😀é", {});
  StreamDecoder d(t);
  std::vector<std::string> parts;
  for (int32_t id : ids) parts.push_back(d.push(id));
  EXPECT_EQ(parts, (std::vector<std::string>{"", "x", " ", "", "", "", "😀", "", "é"}));
  EXPECT_EQ(d.finish(), "");
}

TEST(StreamDecoder, EqualsDecodeForEveryPrefixEvenOfNoise) {
  for (TokenizerSpec spec : {with_bytes(), sample()}) {
    Tokenizer t(std::move(spec));
    uint32_t seed = 1;
    for (int round = 0; round < 200; ++round) {
      Ids ids;
      for (int i = 0; i < 24; ++i) {
        seed = seed * 1664525 + 1013904223;
        ids.push_back(static_cast<int32_t>((seed >> 8) % static_cast<uint32_t>(t.size())));
      }
      for (size_t n = 0; n <= ids.size(); ++n) {
        StreamDecoder d(t);
        std::string text;
        for (size_t i = 0; i < n; ++i) text += d.push(ids[i]);
        text += d.finish();
        ASSERT_EQ(text, t.decode(std::span(ids).first(n)));
        ASSERT_EQ(text, utf8_sanitize(text));
      }
    }
  }
}

TEST(StreamDecoder, ReplacesBytesThatStayIncomplete) {
  Tokenizer t(with_bytes());
  auto byte = [](int b) { return 3 + b; };
  // One U+FFFD for each byte, as SentencePiece decodes them.
  EXPECT_EQ(t.decode(Ids{byte(0xF0), byte(0x9F), 2}), "\uFFFD\uFFFDx");
  EXPECT_EQ(t.decode(Ids{byte(0xF0), byte(0x9F)}), "\uFFFD\uFFFD");
  EXPECT_EQ(t.decode(Ids{byte(0xFF), byte(0xC3), byte(0xA9)}), "\uFFFDé");
}

TEST(StreamDecoder, KeepsTheFirstSpaceOfAContinuation) {
  Tokenizer t(with_bytes());
  EXPECT_EQ(t.decode(Ids{1, 1}), "x x");
  EXPECT_EQ(t.decode(Ids{1, 1}, {true, true}), " x x");
}

TEST(StreamDecoder, WaitsWithTheSpaceOfAWordEnd) {
  TokenizerSpec s = bpe({"a</w>", "b"});
  s.decoder = {{"BPEDecoder", {{"suffix", "</w>"}}}};
  Tokenizer t(std::move(s));
  StreamDecoder d(t);
  EXPECT_EQ(d.push(0), "a");
  EXPECT_EQ(d.push(0), " a");
  EXPECT_EQ(d.push(1), " b");
  EXPECT_EQ(d.finish(), "");
  EXPECT_EQ(t.decode(Ids{0, 0}), "a a");
}

TEST(Tokenizer, ByteLevelAlphabetGoesBothWays) {
  std::string bytes;
  for (int b = 0; b < 256; ++b) bytes += static_cast<char>(b);
  std::string text = byte_level_encode(bytes);
  EXPECT_TRUE(utf8_valid(text));
  std::string back;
  for (size_t i = 0; i < text.size();) back += static_cast<char>(byte_level_byte(utf8_next(text, &i)));
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(byte_level_encode(" \n"), "ĠĊ");
}

// Words and the uncut text must give the same ids: the merges never cross where text is cut for speed.
TEST(Tokenizer, CutsLongTextOnlyWhereNoMergeCrosses) {
  TokenizerSpec s = bpe({"▁", "a", "b", "▁a", "b▁", "b▁a", "ab", "▁▁"},
                        {"b", "▁", "b▁", "a", "▁", "a", "a", "b", "▁", "▁"});
  Tokenizer t(std::move(s));
  EXPECT_EQ(t.encode("a▁ab▁a▁▁▁ab", {}), (Ids{1, 3, 5, 7, 3, 2}));
}

TEST(Tokenizer, ManyThreadsMayEncode) {
  Tokenizer t(with_bytes());
  Ids expected = t.encode("x x 😀 x", {});
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) wrong += t.encode("x x 😀 x", {}) != expected;
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Tokenizer, UnknownCharactersFollowTheModel) {
  TokenizerSpec s = bpe({"a", "<unk>"});
  EXPECT_EQ(Tokenizer(s).encode("a?!a", {}), (Ids{0, 0}));  // no unknown token: they vanish
  s.unk = 1;
  EXPECT_EQ(Tokenizer(s).encode("a?!a", {}), (Ids{0, 1, 1, 0}));
  s.fuse_unk = true;
  EXPECT_EQ(Tokenizer(s).encode("a?!a", {}), (Ids{0, 1, 0}));
  s.model = TokenizerModel::wordlevel;
  s.unk.reset();
  EXPECT_THROW(Tokenizer(s).encode("b", {}), Error);
}

TEST(Tokenizer, WordPieceGivesOneUnknownForAWholeWord) {
  TokenizerSpec s = bpe({"[UNK]", "un", "##aff", "##able", "##a"});
  s.model = TokenizerModel::wordpiece;
  s.continuing_prefix = "##";
  s.unk = 0;
  s.max_word_characters = 9;
  s.pre_tokenizer = {{"BertPreTokenizer", {}}};
  Tokenizer t(std::move(s));
  EXPECT_EQ(t.encode("unaffable", {}), (Ids{1, 2, 3}));
  EXPECT_EQ(t.encode("unaffz unaff", {}), (Ids{0, 1, 2}));
  EXPECT_EQ(t.encode("unaffaaaaa", {}), Ids{0});  // too long
}

TEST(Tokenizer, UnigramTakesTheBestSum) {
  TokenizerSpec s = bpe({"<unk>", "a", "b", "ab", "abb"});
  s.model = TokenizerModel::unigram;
  s.scores = {0, -1, -1, -1.5, -4};
  s.unk = 0;
  Tokenizer t(std::move(s));
  EXPECT_EQ(t.encode("abb", {}), (Ids{3, 2}));
  EXPECT_EQ(t.encode("a??b", {}), (Ids{1, 0, 2}));  // unknown characters in a row are one
}

TEST(Tokenizer, RefusesDescriptionsThatDoNotFit) {
  auto fails = [](TokenizerSpec s, const char* text) {
    try {
      Tokenizer t(std::move(s));
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Tokenizer);
      EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
    }
  };
  TokenizerSpec s = sample();
  s.normalizer = {{"Rot13", {}}};
  fails(s, "Rot13");
  s = sample();
  s.pre_tokenizer = {{"Syllables", {}}};
  fails(s, "Syllables");
  s = sample();
  s.decoder = {{"CTC", {}}};
  fails(s, "CTC");
  s = sample();
  s.decoder = {{"Fuse", {}}, {"Replace", {{"pattern", "a"}, {"content", "b"}}}};
  fails(s, "needs the whole text");
  s = sample();
  s.post_processor = {{"Sparkles", {}}};
  fails(s, "Sparkles");
  s = sample();
  s.pre_tokenizer = {{"Split", {{"pattern", "a"}, {"behavior", "Torn"}}}};
  fails(s, "Torn");
  s = sample();
  s.pre_tokenizer = {{"Metaspace", {{"prepend_scheme", "second"}}}};
  fails(s, "second");
  s = sample();
  s.normalizer = {{"Lowercase", {}}, {"Strip", {{"strip_left", "yes"}}}};
  fails(s, "strip_left");
  s = sample();
  s.normalizer = {{"Precompiled", {{"precompiled_charsmap", "AAA"}}}};
  fails(s, "base64");
  s = sample();
  s.normalizer = {{"Precompiled", {{"precompiled_charsmap", "/////w=="}}}};
  fails(s, "longer than the table");
  s = sample();
  s.merges.push_back("a");
  s.merges.push_back("zz");
  fails(s, "'zz'");
  s = sample();
  s.added.push_back({99});
  fails(s, "99");
  s = sample();
  s.post_processor = {{"TemplateProcessing", {{"single", std::vector<std::string>{"<nope>:0", "$A:0"}}}}};
  fails(s, "<nope>");
  s = sample();
  s.model = TokenizerModel::unigram;
  fails(s, "scores");
  s = sample();
  s.model = TokenizerModel::wordpiece;
  fails(s, "unknown token");
  s = sample();
  s.tokens.push_back("\xFF");
  fails(s, "UTF-8");
}

// Tens of thousands of merges, some with escapes, read by two threads from the text of a vocab section: the same ids as
// from the description that was read as a whole.
TEST(Tokenizer, ReadsMergesOfTheTextAsThoseOfTheDescription) {
  TokenizerSpec s;
  std::mt19937 random(3);
  std::vector<std::string> parts = {"\"", "\\", "\n", "▁"};
  for (char c = 'a'; c <= 'z'; c++) parts.push_back(std::string(1, c));
  std::set<std::string> known(parts.begin(), parts.end());
  while (parts.size() < 45000) {
    const std::string left = parts[random() % parts.size()], right = parts[random() % std::min<size_t>(parts.size(), 900)];
    if (left.size() + right.size() > 24 || !known.insert(left + right).second) continue;
    parts.push_back(left + right);
    s.merges.push_back(left);
    s.merges.push_back(right);
    if (random() % 50 == 0) {  // again: the later rank counts
      s.merges.push_back(left);
      s.merges.push_back(right);
    }
  }
  for (const std::string& part : parts) s.tokens.push_back(part);
  s.added = {{40, true}, {77}};
  const std::string text = write_vocab(s);
  MergeText left_there;
  EXPECT_TRUE(read_vocab(text, &left_there).merges.empty());
  EXPECT_EQ(left_there.count, s.merges.size() / 2);
  const Tokenizer whole(s), quick = Tokenizer::from_vocab(text);
  for (int round = 0; round < 300; round++) {
    std::string input;
    while (input.size() < 120) input += parts[random() % parts.size()];
    EXPECT_EQ(quick.encode(input), whole.encode(input)) << input;
  }
}

TEST(Tokenizer, RefusesDamagedMergesOfTheText) {
  const std::string head = "[model]\ntype = \"BPE\"\n\n[tokens]\n0 = \"a\"\n1 = \"b\"\n2 = \"ab\"\n";
  EXPECT_NO_THROW(Tokenizer::from_vocab(head + "\n[merges]\n0 = [\"a\", \"b\"]\n"));
  const std::pair<const char*, const char*> cases[] = {
      {"0 = [\"a\", \"z\"]\n", "'z'"},
      {"0 = [\"b\", \"a\"]\n", "merge 0"},
      {"1 = [\"a\", \"b\"]\n", "line 10"},
      {"0 = [\"a\", \"b\"]\n0 = [\"a\", \"b\"]\n", "line 11"},
      {"0 = [\"a\", \"b\"]\n2 = [\"a\", \"b\"]\n", "line 11"},
      {"0 = [\"a\"]\n1 = [\"a\", \"b\"]\n", "line 10"},
      {"0 = [\"a\", \"b\"] 7\n1 = [\"a\", \"b\"]\n", "line 10"},
      {"0 = [\"a\", \"b\"]\n[special]\n9 = {}\n", "token 9"},
      {"0 = [\"a\", \"b\"]\n[merges]\n1 = [\"a\", \"b\"]\n", "numbered"},
  };
  for (auto& [merges, expected] : cases) {
    try {
      Tokenizer::from_vocab(head + "\n[merges]\n" + merges);
      ADD_FAILURE() << merges;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(expected), std::string::npos) << e.message() << " of " << merges;
    }
  }
}

// Near linear: a mistake here would take minutes, and the test's time limit ends it.
TEST(Tokenizer, TakesAMegabyteOfOneCharacter) {
  TokenizerSpec s = bpe({"a", "aa", "aaaa"}, {"a", "a", "aa", "aa"});
  Tokenizer t(std::move(s));
  EXPECT_EQ(t.encode(std::string(1 << 20, 'a'), {}).size(), size_t{1} << 18);
}

}  // namespace
}  // namespace cyb
