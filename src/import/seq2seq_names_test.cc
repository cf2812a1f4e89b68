// SPDX-License-Identifier: Apache-2.0
#include "import/seq2seq_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>

#include "base/error.h"

namespace cyb {
namespace {

// Tensors of one value each; equal values are equal tensors.
struct Checkpoint {
  std::deque<float> values;
  std::vector<SafeTensor> tensors;
  Config config;
  std::vector<std::pair<std::string, std::string>> ignored;

  explicit Checkpoint(const char* model_type, const char* head = "language") {
    config.set("model_type", model_type);
    config.set("architecture.head", head);
  }
  Checkpoint& add(const std::string& name, float value) {
    values.push_back(value);
    SafeTensor t;
    t.name = name;
    t.type = SafetensorType::F32;
    t.shape = {1};
    t.data = reinterpret_cast<const uint8_t*>(&values.back());
    t.size = 4;
    tensors.push_back(std::move(t));
    return *this;
  }
  std::vector<std::string> names() {
    adapt_seq2seq_tensors(&tensors, &config, &ignored);
    std::vector<std::string> out;
    for (const SafeTensor& t : tensors) out.push_back(t.name);
    std::sort(out.begin(), out.end());
    return out;
  }
  bool is(const char* key) const { return config.boolean(std::string("architecture.") + key); }
};
using Names = std::vector<std::string>;

TEST(Seq2SeqNames, TablesThatAreStoredTwiceAreReadOnce) {
  // As PyTorch files have them: the shared one first.
  Checkpoint c("bart");
  c.add("model.shared.weight", 1).add("model.encoder.embed_tokens.weight", 1);
  c.add("model.decoder.embed_tokens.weight", 1).add("lm_head.weight", 1).add("final_logits_bias", 3);
  EXPECT_EQ(c.names(), (Names{"final_logits_bias", "model.shared.weight"}));
  EXPECT_EQ(c.ignored.size(), 3u);
  EXPECT_TRUE(c.is("tie_word_embeddings"));
  EXPECT_TRUE(c.is("final_logits_bias"));
  Checkpoint bare("bart");
  bare.add("encoder.layers.0.fc1.weight", 4).add("shared.weight", 1);
  EXPECT_EQ(bare.names(), (Names{"model.encoder.layers.0.fc1.weight", "model.shared.weight"}));
  EXPECT_FALSE(bare.is("final_logits_bias"));
}

TEST(Seq2SeqNames, OneOfTheTablesIsEnough) {
  Checkpoint c("t5", "none");
  c.add("encoder.embed_tokens.weight", 1).add("encoder.block.0.layer.0.layer_norm.weight", 2);
  c.add("decoder.block.0.layer.0.layer_norm.weight", 2);
  EXPECT_EQ(c.names(), (Names{"encoder.block.0.layer.0.layer_norm.weight", "shared.weight"}));
}

TEST(Seq2SeqNames, HeadsAreTiedWhereTheTensorsAre) {
  Checkpoint own("t5");
  own.config.set("architecture.tie_word_embeddings", false);
  own.add("shared.weight", 1).add("lm_head.weight", 2);
  EXPECT_EQ(own.names(), (Names{"lm_head.weight", "shared.weight"}));
  EXPECT_FALSE(own.is("tie_word_embeddings"));
  EXPECT_FALSE(own.is("scale_decoder_outputs"));
  // Without a head of its own the config's word is about the scale only.
  Checkpoint scaled("t5");
  scaled.config.set("architecture.tie_word_embeddings", false);
  scaled.add("shared.weight", 1);
  EXPECT_EQ(scaled.names(), Names{"shared.weight"});
  EXPECT_TRUE(scaled.is("tie_word_embeddings"));
  EXPECT_FALSE(scaled.is("scale_decoder_outputs"));
  Checkpoint plain("t5");
  plain.add("shared.weight", 1).add("lm_head.weight", 1);
  EXPECT_EQ(plain.names(), Names{"shared.weight"});
  EXPECT_TRUE(plain.is("scale_decoder_outputs"));
}

TEST(Seq2SeqNames, TablesThatDifferStay) {
  // Nothing reads them: the import is refused, not wrong.
  Checkpoint c("mbart");
  c.add("model.shared.weight", 1).add("model.encoder.embed_tokens.weight", 2);
  EXPECT_EQ(c.names(), (Names{"model.encoder.embed_tokens.weight", "model.shared.weight"}));
  Checkpoint two("marian");
  two.config.set("architecture.share_encoder_decoder_embeddings", false);
  two.add("model.encoder.embed_tokens.weight", 1).add("model.decoder.embed_tokens.weight", 2);
  two.add("lm_head.weight", 2).add("model.encoder.embed_positions.weight", 5);
  EXPECT_EQ(two.names(), (Names{"model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"}));
}

TEST(Seq2SeqNames, OtherModelsAreLeftAlone) {
  Checkpoint c("llama");
  c.add("lm_head.weight", 1);
  EXPECT_EQ(c.names(), Names{"lm_head.weight"});
  EXPECT_EQ(seq2seq_head("llama", "LlamaForCausalLM"), std::nullopt);
  EXPECT_EQ(seq2seq_head("t5", "T5EncoderModel"), "none");
  EXPECT_EQ(seq2seq_head("marian", "MarianMTModel"), "language");
  EXPECT_EQ(seq2seq_head("bart", "BartForSequenceClassification"), "sequence");
  EXPECT_THROW(seq2seq_head("t5", "T5ForTokenClassification"), Error);
  EXPECT_THROW(seq2seq_head("marian", "MarianModel"), Error);
}

}  // namespace
}  // namespace cyb
