// SPDX-License-Identifier: Apache-2.0
#include "import/tokenizer_json.h"

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "import/tokenizer_golden.h"
#include "import/tokenizer_sentencepiece.h"

namespace cyb {
namespace {

using golden::Ids;
using golden::json;

class TrainedTokenizer : public testing::TestWithParam<const char*> {};

TEST_P(TrainedTokenizer, GivesTheIdsAndTextsOfTheReference) {
  std::string name = GetParam();
  TokenizerSpec spec = tokenizer_from_json(read_file(golden::path(name + ".tokenizer.json")));
  Tokenizer t = golden::through_vocab(spec);
  golden::check(t, golden::load(name + ".ids.json"));
}

INSTANTIATE_TEST_SUITE_P(All, TrainedTokenizer,
                         testing::Values("byte_bpe", "llama_bpe", "metaspace_bpe", "clip", "plain_bpe",
                                         "falcon", "bert_uncased", "bert_cased", "unigram", "unigram_bytes",
                                         "word_level", "bert_flags", "bert_plain", "xlm_roberta",
                                         "deberta_v3", "roberta"),
                         [](const auto& test) { return std::string(test.param); });

class SentencePieceFile : public testing::TestWithParam<const char*> {};

TEST_P(SentencePieceFile, GivesTheIdsOfSentencePiece) {
  std::string name = GetParam();
  Tokenizer t = golden::through_vocab(tokenizer_from_sentencepiece(read_file(golden::path(name + ".spm"))));
  json g = golden::load(name + ".ids.json");
  for (size_t i = 0; i < g["texts"].size(); ++i)
    EXPECT_EQ(t.encode(g["texts"][i].get<std::string>(), {false, false}), g["ids"][i].get<Ids>())
        << g["texts"][i];
}

INSTANTIATE_TEST_SUITE_P(All, SentencePieceFile, testing::Values("sp_bpe", "sp_unigram"),
                         [](const auto& test) { return std::string(test.param); });

TEST(SentencePiece, SiglipsClassReadsPlainWords) {
  const Tokenizer t = golden::through_vocab(tokenizer_from_sentencepiece(
      read_file(golden::path("sp_unigram.spm")), R"({"tokenizer_class": "SiglipTokenizer"})"));
  const json g = golden::load("siglip.ids.json");
  ASSERT_GE(g["texts"].size(), 300u);
  for (size_t i = 0; i < g["texts"].size(); ++i)
    EXPECT_EQ(t.encode(g["texts"][i].get<std::string>(), {false, true}), g["ids"][i].get<Ids>())
        << g["texts"][i];
}

TEST(SentencePiece, EndsInAnErrorAtEveryTruncation) {
  std::string file = read_file(golden::path("sp_bpe.spm"));
  for (size_t n = 0; n < file.size(); n += n < 200 ? 1 : 97) {
    try {
      tokenizer_from_sentencepiece(file.substr(0, n));
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Tokenizer);
    }
  }
  EXPECT_THROW(tokenizer_from_sentencepiece("<html>"), Error);
}

TEST(SentencePiece, FollowsTheConfigAndRefusesClassesThatRenumber) {
  std::string file = read_file(golden::path("sp_bpe.spm"));
  Tokenizer llama(
      tokenizer_from_sentencepiece(file, R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true})"));
  EXPECT_TRUE(llama.adds_bos());
  EXPECT_FALSE(llama.adds_eos());
  EXPECT_EQ(llama.encode("fox").front(), 1);
  Tokenizer both(tokenizer_from_sentencepiece(
      file,
      R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true, "add_eos_token": true, "eos_token": "</s>"})"));
  EXPECT_TRUE(both.adds_eos());
  EXPECT_THROW(tokenizer_from_sentencepiece(file, R"({"tokenizer_class": "BigBirdTokenizer"})"), Error);
}

// A byte-level tokenizer.json of a few tokens, to be changed by the tests.
json sample() {
  return json::parse(R"({
    "added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false}],
    "normalizer": null, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false}, "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
}

std::string message_of(const std::string& text, const std::string& config = "") {
  try {
    tokenizer_from_json(text, config);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Tokenizer);
    EXPECT_FALSE(e.advice().empty()) << e.message();
    return e.message();
  }
  return "no error";
}

TEST(TokenizerJson, ReadsOldAndNewSpellings) {
  json j = sample();
  EXPECT_EQ(Tokenizer(tokenizer_from_json(j.dump())).encode("ab"), Ids{2});
  j["model"]["merges"] = json::parse(R"([["a", "b"]])");
  j["model"].erase("type");
  EXPECT_EQ(Tokenizer(tokenizer_from_json(j.dump())).encode("ab"), Ids{2});
  j["pre_tokenizer"] =
      json::parse(R"({"type": "Metaspace", "replacement": "▁", "str_rep": "▁", "add_prefix_space": false})");
  TokenizerSpec spec = tokenizer_from_json(j.dump());
  EXPECT_EQ(spec.pre_tokenizer[0].text("prepend_scheme", ""), "never");
}

TEST(TokenizerJson, TakesRolesAndFlagsFromTheConfig) {
  std::string config =
      R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "unk_token": "ab", "add_bos_token": true,
    "added_tokens_decoder": {"4": {"content": "</s>", "special": true}, "6": {"content": "<x>", "special": false,
    "rstrip": true, "normalized": false}}})";
  Tokenizer t(tokenizer_from_json(sample().dump(), config));
  EXPECT_EQ(t.size(), 7);
  EXPECT_EQ(t.bos(), 3);
  EXPECT_EQ(t.eos(), 4);
  EXPECT_EQ(t.unk(), std::nullopt);  // BPE without unknown token stays so
  EXPECT_TRUE(t.adds_bos());
  EXPECT_EQ(t.encode("b<x>  b"), (Ids{3, 1, 6, 1}));
}

TEST(TokenizerJson, NamesWhatItDoesNotKnow) {
  auto with = [](const char* key, const char* value) {
    json j = sample();
    j[json::json_pointer(key)] = json::parse(value);
    return message_of(j.dump());
  };
  auto has = [](const std::string& message, const char* text) {
    EXPECT_NE(message.find(text), std::string::npos) << message;
  };
  has(with("/normalizer", R"({"type": "Rot13"})"), "Rot13");
  has(with("/normalizer", R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Shout"}]})"),
      "Shout");
  has(with("/pre_tokenizer", R"({"type": "UnicodeScripts"})"), "UnicodeScripts");
  has(with("/pre_tokenizer", R"({"type": "ByteLevel", "new_option": true})"), "new_option");
  has(with("/pre_tokenizer", R"({"type": "Split", "pattern": {"Glob": "*"}, "behavior": "Isolated"})"),
      "pattern");
  has(with("/post_processor", R"({"type": "Sparkles"})"), "Sparkles");
  has(with("/decoder", R"({"type": "CTC"})"), "CTC");
  has(with("/model/type", R"("Magic")"), "Magic");
  has(with("/model/dropout", "0.1"), "dropout");
  has(with("/model/merges", R"(["a b c"])"), "a b c");
  has(with("/model/merges", R"(["a z"])"), "'z'");
  has(with("/model/merges", "7"), "merges");
  has(with("/model/vocab", "[]"), "vocabulary");
  has(with("/model/vocab", R"({"a": -1})"), "number below");
  has(with("/model/vocab", R"({"a": 99999999})"), "number below");
  has(with("/model/vocab", R"({"a": 0, "b": 0})"), "id 0 is both");
  has(with("/model/unk_token", R"("none")"), "none");
  has(with("/model/unk_token", "5"), "unk_token");
  has(with("/added_tokens", R"([{"id": 3, "content": 5}])"), "content");
  has(with("/added_tokens", R"([5])"), "added token");
  has(message_of("{"), "not a JSON object");
  has(message_of("[]"), "not a JSON object");
  has(message_of("{}"), "no model");
  has(message_of(sample().dump(), "[]"), "tokenizer_config.json");
  has(message_of(sample().dump(), R"({"added_tokens_decoder": {"x": {}}})"), "'x'");
  json deep = json::parse(R"({"type": "NFC"})");
  for (int i = 0; i < 40; ++i) deep = {{"type", "Sequence"}, {"normalizers", {deep}}};
  json j = sample();
  j["normalizer"] = deep;
  has(message_of(j.dump()), "nested too deep");
}

TEST(TokenizerJson, EndsInAnErrorAtEveryTruncationAndValueChange) {
  std::string text = read_file(golden::path("llama_bpe.tokenizer.json"));
  for (size_t n = 0; n < text.size(); n += 211) EXPECT_NE(message_of(text.substr(0, n)), "no error");
  // Each value in turn becomes one of another type.
  const json flat = sample().flatten();
  for (const auto& item : flat.items()) {
    for (const json& value :
         {json(nullptr), json(-1), json(1e300), json("x"), json::array(), json::object()}) {
      json changed = sample();
      changed[json::json_pointer(item.key())] = value;
      try {
        tokenizer_from_json(changed.dump());
      } catch (const Error&) {
      }
    }
  }
}

TEST(TokenizerJson, RefusesAddedTokensThatAreNoList) {
  try {
    tokenizer_from_json(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}, "added_tokens": 5})",
                        "");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("'added_tokens' is not a list"), std::string::npos) << e.message();
  }
}

TEST(TokenizerJson, SaysWhichFilesAFolderLacks) {
  auto folder = std::filesystem::temp_directory_path() / "cyb_tokenizer_json_test";
  std::filesystem::create_directories(folder);
  try {
    tokenizer_from_folder(folder.string());
    ADD_FAILURE();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("tokenizer.json"), std::string::npos);
  }
  std::ofstream(folder / "tokenizer.json") << sample().dump();
  EXPECT_EQ(Tokenizer(tokenizer_from_folder(folder.string())).encode("ab"), Ids{2});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace cyb
