// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_gguf.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "import/gguf_file.h"
#include "import/tokenizer_golden.h"
#include "import/tokenizer_json.h"

namespace cyb {
namespace {

using golden::Ids;
using golden::json;

GgufTokenizerFields sample(const char* model) {
  GgufTokenizerFields f;
  f.architecture = "llama";
  f.model = model;
  f.pre = "gpt-2";
  f.tokens = {"<s>", "a", "b", "ab", "<u>"};
  f.types = {3, 1, 1, 1, 4};
  f.merges = {"a b"};
  f.bos = 0;
  return f;
}

TEST(GgufTokenizer, KeepsControlAndUserDefinedTokensApart) {
  Tokenizer t(tokenizer_from_gguf(sample("gpt2")));
  EXPECT_EQ(t.encode("ab<u><s>", {true, true}), (Ids{3, 4, 0}));
  EXPECT_EQ(t.encode("ab<u>", {false, true}), (Ids{3, 4}));
  EXPECT_FALSE(t.adds_bos());
  GgufTokenizerFields f = sample("gpt2");
  f.add_bos = true;
  EXPECT_EQ(Tokenizer(tokenizer_from_gguf(f)).encode("a"), (Ids{0, 1}));
  f = sample("gpt2");
  f.pre = "llama-bpe";
  EXPECT_TRUE(Tokenizer(tokenizer_from_gguf(f)).adds_bos());
}

TEST(GgufTokenizer, PairsOfEncodersStandBetweenSeparators) {
  GgufTokenizerFields f = sample("t5");
  f.architecture = "bert";
  f.tokens = {"<s>", "<pad>", "</s>", "<unk>", "▁a", "▁b"};
  f.types = {3, 3, 3, 2, 1, 1};
  f.scores = {0, 0, 0, 0, -1, -2};
  f.merges.clear();
  f.eos = f.sep = 2;
  f.unk = 3;
  f.add_bos = f.add_eos = true;
  const Tokenizer t(tokenizer_from_gguf(f));
  EXPECT_EQ(t.encode("a b"), (Ids{0, 4, 5, 2}));
  const Tokenizer::Pair pair = t.encode_pair("a", "b");
  EXPECT_EQ(pair.ids, (Ids{0, 4, 2, 2, 5, 2}));
  EXPECT_EQ(pair.types, (Ids{0, 0, 0, 0, 0, 0}));
}

TEST(GgufTokenizer, BuildsSentencePieceMergesFromScores) {
  GgufTokenizerFields f = sample("llama");
  f.pre = "default";
  f.tokens = {"<unk>", "<s>", "</s>", "<0x0A>", "▁", "a", "b", "ab", "▁a", "▁ab", "bb"};
  f.types = {2, 3, 3, 6, 1, 1, 1, 1, 1, 1, 1};
  f.scores = {0, 0, 0, 0, -9, -9, -9, -2, -1, -3, -4};
  f.merges.clear();
  f.bos = 1;
  f.eos = 2;
  f.unk = 0;
  TokenizerSpec spec = tokenizer_from_gguf(f);
  std::vector<std::string> merges;
  for (size_t i = 0; i < spec.merges.size(); i += 2)
    merges.push_back(std::string(spec.merges[i]) + " " + std::string(spec.merges[i + 1]));
  EXPECT_EQ(merges, (std::vector<std::string>{"▁ a", "a b", "▁a b", "▁ ab", "b b"}));
  Tokenizer t(spec);
  EXPECT_EQ(t.encode("ab abb\n?"), (Ids{1, 9, 9, 6, 3, 0}));
  EXPECT_EQ(t.decode(Ids{1, 9, 9, 3}), "ab ab\n");
  f.add_space_prefix = false;
  f.add_bos = false;
  EXPECT_EQ(Tokenizer(tokenizer_from_gguf(f)).encode("ab"), Ids{7});
}

TEST(GgufTokenizer, Gemma4BringsMergesAndAddsNoBos) {
  GgufTokenizerFields f = sample("gemma4");
  f.architecture = "gemma4";
  f.tokens = {"<pad>", "<bos>", "<unk>", "▁", "a", "▁a", "▁▁"};
  f.types = {3, 3, 2, 1, 1, 1, 4};
  f.merges = {"▁ a", "▁ ▁"};
  f.bos = 1;
  f.add_bos = true;
  Tokenizer t(tokenizer_from_gguf(f));
  EXPECT_EQ(t.encode("a  a"), (Ids{4, 3, 5}));
  EXPECT_FALSE(t.adds_bos());
}

TEST(GgufTokenizer, ReadsUnigramWithItsBlanks) {
  GgufTokenizerFields f = sample("t5");
  f.architecture = "t5";
  f.pre.clear();
  f.tokens = {"<pad>", "</s>", "<unk>", "▁", "▁a", "a", "[PAD6]", "[PAD7]"};
  f.types = {3, 3, 2, 1, 1, 1, 5, 5};
  f.scores = {0, 0, 0, -2, -3, -4, 0, 0};
  f.merges.clear();
  f.bos.reset();
  f.eos = 1;
  f.unk = 2;
  Tokenizer t(tokenizer_from_gguf(f));
  EXPECT_EQ(t.encode("a  a <extra_id_98>", {true, true}), (Ids{4, 4, 7, 1}));
  EXPECT_EQ(t.encode("   "), Ids{1});  // spaces alone give nothing
}

TEST(GgufTokenizer, ReadsWordPieceMarkedAtWordStarts) {
  GgufTokenizerFields f = sample("bert");
  f.architecture = "bert";
  f.pre.clear();
  f.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁un", "able", "▁!"};
  f.types = {3, 3, 3, 3, 1, 1, 1};
  f.merges.clear();
  f.bos = 2;
  f.eos = 3;
  f.unk = 1;
  Tokenizer t(tokenizer_from_gguf(f));
  EXPECT_EQ(t.encode("UNABLE! x"), (Ids{2, 4, 5, 6, 1, 3}));
  EXPECT_EQ(t.token_text(5), "##able");
  EXPECT_EQ(t.decode(Ids{4, 5, 6}), "unable!");
}

TEST(GgufTokenizer, Phi3ControlTokensTakeTheSpaceBehind) {
  GgufTokenizerFields f = sample("llama");
  f.architecture = "phi3";
  f.tokens = {"<unk>", "<s>", "</s>", "▁", "a", "<|end|>", "<|endoftext|>"};
  f.types = {2, 3, 3, 1, 1, 3, 3};
  f.scores = {0, 0, 0, 0, 0, 0, 0};
  f.merges.clear();
  f.bos = 1;
  Tokenizer t(tokenizer_from_gguf(f));
  EXPECT_EQ(t.encode("<|end|> \na<|endoftext|> a", {true, false}), (Ids{5, 3, 4, 6, 3, 3, 4}));
}

TEST(GgufTokenizer, NamesWhatItDoesNotKnow) {
  auto fails = [](GgufTokenizerFields f, const char* text) {
    try {
      tokenizer_from_gguf(f);
      ADD_FAILURE() << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Tokenizer);
      EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
      EXPECT_FALSE(e.advice().empty());
    }
  };
  GgufTokenizerFields f = sample("gpt2");
  f.pre = "brand-new";
  fails(f, "'brand-new'");
  f.pre.clear();
  fails(f, "tokenizer.ggml.pre");
  fails(sample("rwkv"), "'rwkv'");
  f = sample("gpt2");
  f.merges.clear();
  fails(f, "merges");
  f = sample("gpt2");
  f.merges = {"ab"};
  fails(f, "'ab'");
  f = sample("gpt2");
  f.merges = {"a z"};
  fails(f, "'z'");
  f = sample("gpt2");
  f.types.pop_back();
  fails(f, "4 token types for 5 tokens");
  f = sample("gpt2");
  f.bos = 5;
  fails(f, "BOS");
  f = sample("gpt2");
  f.tokens.clear();
  fails(f, "no vocabulary");
  fails(sample("t5"), "scores");
}

TEST(GgufTokenizer, OldFilesAreReadWhereTheArchitectureDecides) {
  GgufTokenizerFields f = sample("gpt2");
  f.pre.clear();
  f.architecture = "starcoder2";
  EXPECT_EQ(tokenizer_from_gguf(f).pre_tokenizer.size(), 2u);
}

// All patterns of the table, on all strings, against the reference's own run of the original patterns.
TEST(GgufTokenizer, PreNamesCutAsTheOriginalTokenizers) {
  TokenizerSpec base = tokenizer_from_json(read_file(golden::path("byte_bpe.tokenizer.json")));
  json g = golden::load("pre_names.crc.json");
  EXPECT_GE(g.size(), 13u);
  for (const auto& [name, sums] : g.items()) {
    TokenizerSpec spec = base;
    spec.normalizer.clear();
    ASSERT_TRUE(apply_gguf_pre(name, &spec)) << name;
    spec.ignore_merges = base.ignore_merges;
    Tokenizer t(std::move(spec));
    int wrong = 0;
    for (size_t i = 0; i < golden::texts().size() && wrong < 3; ++i) {
      std::string list = "[";
      for (int32_t id : t.encode(golden::texts()[i], {true, false}))
        list += (list.size() > 1 ? ", " : "") + std::to_string(id);
      list += "]";
      uint32_t sum = golden::crc32(list);
      if (sum != sums[i].get<uint32_t>() && ++wrong)
        ADD_FAILURE() << name << ": '" << golden::texts()[i].substr(0, 100) << "'";
    }
  }
}

TEST(GgufTokenizer, EveryPreNameWorks) {
  for (std::string_view name : gguf_pre_names()) {
    GgufTokenizerFields f = sample("gpt2");
    f.pre = name;
    EXPECT_EQ(Tokenizer(tokenizer_from_gguf(f)).encode("ab", {true, false}), Ids{3}) << name;
  }
}

class RealVocabulary : public testing::TestWithParam<const char*> {};

TEST_P(RealVocabulary, GivesTheIdsOfTheOriginalTokenizer) {
  std::string name = GetParam();
  const char* folder = std::getenv("CYB_TEST_MODELS");
  if (!folder) GTEST_SKIP() << "set CYB_TEST_MODELS to a folder with smollm2.gguf, gemma3.gguf and qwen.gguf";
  std::string path = (std::filesystem::path(folder) / (name + ".gguf")).string();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "CYB_TEST_MODELS has no " << name << ".gguf";
  GgufFile file(path);
  Tokenizer t = golden::through_vocab(tokenizer_from_gguf(gguf_tokenizer_fields(file.metadata())));
  golden::check(t, golden::load(name + ".ids.json"));
  EXPECT_EQ(t.adds_bos(), name == "gemma3");
  if (name == "gemma3") {
    EXPECT_EQ(t.encode("Hello").front(), *t.bos());
  }
}

INSTANTIATE_TEST_SUITE_P(All, RealVocabulary, testing::Values("smollm2", "gemma3", "qwen"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cyb
