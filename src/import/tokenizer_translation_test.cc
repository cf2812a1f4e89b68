// SPDX-License-Identifier: Apache-2.0
// How the classes of translation models number the pieces of a SentencePiece model.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "import/tokenizer_golden.h"
#include "import/tokenizer_json.h"
#include "import/tokenizer_vocabulary.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using golden::Ids;
using golden::json;

class TranslationTokenizer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              (std::string("cyb-translation-") + GetParam() + "-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  fs::path folder_;
};

TEST_P(TranslationTokenizer, GivesTheIdsOfItsClass) {
  const json file = golden::load("translation.json");
  const json& g = file["classes"][GetParam()];
  const std::string name = g["file"];
  write(name, read_file(golden::path(name == "spiece.model" ? "sp_t5.spm" : "sp_unigram.spm")));
  write("tokenizer_config.json", g["config"].dump());
  if (!g["vocab"].is_null()) write("vocab.json", g["vocab"].dump());
  const Tokenizer t = golden::through_vocab(tokenizer_from_folder(folder_.string()));
  ASSERT_GE(file["texts"].size(), 280u);
  for (size_t i = 0; i < file["texts"].size(); i++) {
    const auto text = file["texts"][i].get<std::string>();
    const Ids wanted = file["ids"][g["ids"].get<std::string>()][i];
    ASSERT_EQ(t.encode(text, {false, false}), wanted) << text;
    Ids whole = g["before"];
    whole.insert(whole.end(), wanted.begin(), wanted.end());
    for (const int32_t id : g["after"].get<Ids>()) whole.push_back(id);
    ASSERT_EQ(t.encode(text), whole) << text;
  }
  for (const auto& [token, id] : g["tokens"].items()) {
    EXPECT_EQ(t.token_id(token), id.get<int32_t>()) << token;
    EXPECT_TRUE(t.is_special(id.get<int32_t>())) << token;
  }
  EXPECT_EQ(t.decode(t.encode("Hello, how are you?")), "Hello, how are you?");
}

INSTANTIATE_TEST_SUITE_P(All, TranslationTokenizer,
                         testing::Values("marian", "m2m100", "mbart", "mbart50", "nllb", "nllb_legacy",
                                         "xlm_roberta", "t5", "pegasus"),
                         [](const auto& test) { return std::string(test.param); });

class TwoVocabularies : public TranslationTokenizer {};

TEST_P(TwoVocabularies, EachSideHasItsOwn) {
  const json g = golden::load("marian_separate.json");
  write("source.spm", read_file(golden::path("sp_unigram.spm")));
  write("vocab.json", g["vocab"].dump());
  write("tokenizer_config.json", R"({"tokenizer_class": "MarianTokenizer", "separate_vocabs": true})");
  try {
    target_tokenizer_from_folder(folder_.string());
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(e.message().find("target.spm"), std::string::npos) << e.message();
  }
  write("target.spm", read_file(golden::path("sp_t5.spm")));
  EXPECT_THROW(target_tokenizer_from_folder(folder_.string()), Error);
  write("target_vocab.json", g["target_vocab"].dump());
  const Tokenizer source = golden::through_vocab(tokenizer_from_folder(folder_.string()));
  const Tokenizer target = golden::through_vocab(*target_tokenizer_from_folder(folder_.string()));
  for (const auto& c : g["source"])
    EXPECT_EQ(source.encode(c["text"].get<std::string>()), c["ids"].get<Ids>()) << c["text"];
  for (const auto& c : g["target"])
    EXPECT_EQ(target.decode(c["ids"].get<Ids>()), c["text"].get<std::string>()) << c["ids"];
  write("tokenizer_config.json", "{}");
  EXPECT_FALSE(target_tokenizer_from_folder(folder_.string()));
}
INSTANTIATE_TEST_SUITE_P(All, TwoVocabularies, testing::Values("marian_separate"),
                         [](const auto& test) { return std::string(test.param); });

TEST(TranslationVocabulary, WhatItCannotBeIsRefused) {
  const std::string model = read_file(golden::path("sp_unigram.spm"));
  for (const char* vocabulary :
       {"", "[]", "{}", R"({"</s>": 0})", R"({"</s>": 0, "<unk>": 0})", R"({"</s>": 0, "<unk>": -1})",
        R"({"</s>": 0, "<unk>": 4000000000})", R"({"</s>": 0, "<unk>": "1"})"})
    EXPECT_THROW(tokenizer_from_vocabulary(model, vocabulary, ""), Error) << vocabulary;
  const char* vocabulary = R"({"</s>": 0, "<unk>": 1})";
  EXPECT_NO_THROW(tokenizer_from_vocabulary(model, vocabulary, ""));
  EXPECT_THROW(tokenizer_from_vocabulary(
                   model, vocabulary, R"({"tokenizer_class": "M2M100Tokenizer", "language_codes": "wmt21"})"),
               Error);
}

}  // namespace
}  // namespace cyb
