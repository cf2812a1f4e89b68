// SPDX-License-Identifier: Apache-2.0
#include "import/encoder_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/encoder_config.h"
#include "import/sentence_transformers.h"
#include "import/test_files.h"

namespace cyb {
namespace {

struct Checkpoint {
  std::vector<std::vector<float>> storage;
  std::vector<SafeTensor> tensors;
  std::vector<std::pair<std::string, std::string>> ignored;
  Config config;

  explicit Checkpoint(const char* type, const char* head) {
    config.set("model_type", type);
    config.set("architecture.head", head);
    storage.reserve(64);
  }
  void add(const char* name, float value) {
    storage.push_back({value, value});
    SafeTensor t;
    t.name = name;
    t.type = SafetensorType::F32;
    t.shape = {2};
    t.data = reinterpret_cast<const uint8_t*>(storage.back().data());
    t.size = 8;
    tensors.push_back(t);
  }
  std::vector<std::string> names() {
    adapt_encoder_tensors(&tensors, &config, &ignored);
    std::vector<std::string> out;
    for (const SafeTensor& t : tensors) out.push_back(t.name);
    return out;
  }
  bool ignores(const char* name) const {
    return std::any_of(ignored.begin(), ignored.end(), [&](const auto& i) { return i.first == name; });
  }
};

using Names = std::vector<std::string>;

TEST(EncoderNames, LosePrefixesAndOldEndings) {
  Checkpoint c("bert", "none");
  c.add("bert.embeddings.word_embeddings.weight", 1);
  c.add("bert.embeddings.LayerNorm.gamma", 1);
  c.add("bert.embeddings.LayerNorm.beta", 1);
  c.add("bert.embeddings.position_ids", 1);
  c.add("bert.pooler.dense.weight", 1);
  c.add("cls.predictions.bias", 1);
  EXPECT_EQ(c.names(), (Names{"embeddings.word_embeddings.weight", "embeddings.LayerNorm.weight",
                              "embeddings.LayerNorm.bias"}));
  EXPECT_TRUE(c.ignores("embeddings.position_ids"));
  EXPECT_TRUE(c.ignores("pooler.dense.weight"));
  EXPECT_TRUE(c.ignores("cls.predictions.bias"));
}

TEST(EncoderNames, OtherModelTypesAreLeftAlone) {
  Checkpoint c("llama", "none");
  c.add("model.norm.weight", 1);
  c.add("pooler.dense.weight", 1);
  EXPECT_EQ(c.names(), (Names{"model.norm.weight", "pooler.dense.weight"}));
}

TEST(EncoderNames, ThePoolerStaysWhereTheHeadReadsIt) {
  Checkpoint c("bert", "sequence_classification");
  c.add("bert.pooler.dense.weight", 1);
  c.add("classifier.weight", 1);
  EXPECT_EQ(c.names(), (Names{"pooler.dense.weight", "classifier.weight"}));
  Checkpoint r("roberta", "sequence_classification");
  r.add("roberta.pooler.dense.weight", 1);
  r.add("classifier.dense.weight", 1);
  EXPECT_EQ(r.names(), (Names{"classifier.dense.weight"}));
}

TEST(EncoderNames, ADecoderIsTiedOnlyWhereItIsTheSame) {
  for (const float value : {1.0f, 2.0f}) {
    Checkpoint c("bert", "masked_lm");
    c.add("bert.embeddings.word_embeddings.weight", 1);
    c.add("cls.predictions.decoder.weight", value);
    c.add("cls.predictions.bias", 3);
    c.add("cls.predictions.decoder.bias", 3);
    c.add("cls.seq_relationship.weight", 4);
    Names wanted = {"embeddings.word_embeddings.weight"};
    if (value != 1) wanted.emplace_back("cls.predictions.decoder.weight");
    wanted.emplace_back("cls.predictions.bias");
    EXPECT_EQ(c.names(), wanted);
    EXPECT_EQ(c.config.boolean_or("architecture.tie_word_embeddings", true), value == 1);
  }
}

TEST(EncoderNames, HeadsComeFromTheClass) {
  EXPECT_EQ(encoder_head("bert", "BertModel"), "none");
  EXPECT_EQ(encoder_head("roberta", "RobertaForMaskedLM"), "masked_lm");
  EXPECT_EQ(encoder_head("mpnet", "MPNetForTokenClassification"), "token_classification");
  EXPECT_EQ(encoder_head("bert", ""), "none");
  EXPECT_EQ(encoder_head("llama", "LlamaForCausalLM"), std::nullopt);
  EXPECT_EQ(encoder_head("deberta-v2", "DebertaV2ForQuestionAnswering"), "question_answering");
  EXPECT_THROW(encoder_head("bert", "BertForMultipleChoice"), Error);
}

TEST(EncoderConfig, SettingsOfCodeOnTheHubAreTheFamilys) {
  const auto adapted = [](const char* text) {
    nlohmann::ordered_json j = nlohmann::ordered_json::parse(text);
    adapt_encoder_config(j, "config.json");
    return j;
  };
  EXPECT_EQ(adapted(R"({"model_type": "bert"})")["model_type"], "bert");
  const auto jina =
      adapted(R"({"model_type": "bert", "position_embedding_type": "alibi", "feed_forward_type": "reglu"})");
  EXPECT_EQ(jina["model_type"], "jina_bert");
  EXPECT_EQ(jina["hidden_act"], "relu");
  EXPECT_EQ(adapted(R"({"model_type": "xlm-roberta", "position_embedding_type": "rotary"})")["model_type"],
            "jina_embeddings_v3");
  const auto nomic = adapted(R"({"model_type": "nomic_bert", "n_embd": 32, "n_positions": 8192,
    "activation_function": "swiglu", "rotary_scaling_factor": 2, "max_trained_positions": 2048})");
  EXPECT_EQ(nomic["hidden_size"], 32);
  EXPECT_EQ(nomic["rope_scaling"]["rope_type"], "dynamic");
  EXPECT_EQ(nomic["max_position_embeddings"], 8192);
  for (const char* refused :
       {R"({"model_type": "bert", "position_embedding_type": "alibi", "feed_forward_type": "original"})",
        R"({"model_type": "nomic_bert", "n_embd": 32, "activation_function": "swiglu", "prenorm": true})",
        R"({"model_type": "nomic_bert", "n_embd": 32, "activation_function": "gelu"})",
        R"({"model_type": "new", "position_embedding_type": "absolute"})",
        R"({"model_type": "new", "logn_attention_scale": true})",
        R"({"model_type": "new", "layer_norm_type": "rms_norm"})"})
    EXPECT_THROW(adapted(refused), Error) << refused;
}

class SentenceFolder : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) {
    const std::filesystem::path path = folder_.path(name);
    std::filesystem::create_directories(path.parent_path());
    folder_.write(name, text);
  }
  bool read() { return read_sentence_transformers(folder_.path(), &config_, &warnings_); }
  std::string refusal() {
    try {
      read();
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  }
  TempDir folder_;
  Config config_;
  std::vector<std::string> warnings_;
};

constexpr const char* kPooling = R"({"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": true})";

TEST_F(SentenceFolder, PoolingLengthAndPromptsAreRead) {
  EXPECT_FALSE(read());
  write("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])");
  write("1_Pooling/config.json", kPooling);
  write("sentence_bert_config.json", R"({"max_seq_length": 128})");
  write("config_sentence_transformers.json",
        R"({"prompts": {"query": "query: ", "bad.name": "x"}, "default_prompt_name": "query"})");
  EXPECT_TRUE(read());
  EXPECT_EQ(config_.texts("pooling.modes"), (Names{"cls", "mean"}));
  EXPECT_TRUE(config_.boolean("pooling.normalize"));
  EXPECT_EQ(config_.integer("pooling.max_tokens"), 128);
  EXPECT_EQ(config_.text("pooling.prompts.query"), "query: ");
  EXPECT_EQ(config_.text("pooling.default_prompt"), "query");
}

TEST_F(SentenceFolder, UnknownModulesAndPathsAreRefused) {
  write("modules.json", R"([{"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  EXPECT_NE(refusal().find("Dense"), std::string::npos);
  write("modules.json", R"([{"path": "../other", "type": "sentence_transformers.models.Pooling"}])");
  EXPECT_NE(refusal().find("leaves the folder"), std::string::npos);
  write("modules.json", R"({"path": ""})");
  EXPECT_NE(refusal().find("not a list"), std::string::npos);
  write("modules.json", R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  write("1_Pooling/config.json", "{}");
  EXPECT_NE(refusal().find("no kind of pooling"), std::string::npos);
}

}  // namespace
}  // namespace cyb
