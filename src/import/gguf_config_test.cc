// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"
#include "import/source_model.h"
#include "import/test_files.h"
#include "import/test_gguf.h"

namespace cyb {
namespace {

#define EXPECT_HAS(text, part) EXPECT_NE(std::string(text).find(part), std::string::npos) << "text: " << text

// A one-layer model's header; the weights are only as many as the tests look at.
GgufBuilder base(const std::string& arch, uint32_t layers = 1) {
  GgufBuilder b;
  b.set("general.architecture", arch).set(arch + ".block_count", layers).set(arch + ".context_length", 128u);
  b.set(arch + ".embedding_length", 8u).set(arch + ".feed_forward_length", 12u);
  b.set(arch + ".attention.head_count", 2u).set(arch + ".attention.head_count_kv", 1u);
  b.set(arch + ".attention.layer_norm_rms_epsilon", 1e-5f).set(arch + ".rope.freq_base", 10000.0f);
  b.f32("token_embd.weight", {8, 5}, std::vector<float>(40, 0.5f));
  return b;
}

Config config_of(const GgufBuilder& b, std::vector<std::string>* warnings = nullptr) {
  const std::string bytes = b.build();
  const GgufFile file({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  std::vector<std::string> ignored;
  return gguf_config(file, warnings ? warnings : &ignored);
}
std::string failure(const GgufBuilder& b) {
  try {
    config_of(b);
    return "";
  } catch (const Error& e) {
    return e.message() + " / " + e.advice();
  }
}

TEST(GgufConfig, KeysBecomeThoseOfTheCheckpoint) {
  const Config c =
      config_of(base("llama").set("tokenizer.ggml.eos_token_id", 2u).set("tokenizer.ggml.bos_token_id", 1u));
  EXPECT_EQ(c.text("model_type"), "llama");
  EXPECT_EQ(c.integer("architecture.vocab_size"), 5);
  EXPECT_EQ(c.integer("architecture.head_dim"), 4);
  EXPECT_EQ(c.integer("architecture.rms_norm_eps"), 100000);
  EXPECT_EQ(c.integer("architecture.rope_theta"), 10000);
  EXPECT_TRUE(c.boolean("architecture.tie_word_embeddings"));
  EXPECT_FALSE(c.boolean("architecture.attention_bias"));
  EXPECT_EQ(c.integer("tokenizer.eos_token_id"), 2);
  EXPECT_EQ(c.integers("generation.eos_token_id"), (std::vector<int64_t>{2}));
}

TEST(GgufConfig, EncodersHaveTheirOwnKeysAndNames) {
  const auto encoder = [](const std::string& arch, uint32_t pooling = 2) {
    GgufBuilder b;
    b.set("general.architecture", arch).set(arch + ".block_count", 1u).set(arch + ".context_length", 128u);
    b.set(arch + ".embedding_length", 8u).set(arch + ".feed_forward_length", 12u);
    b.set(arch + ".attention.head_count", 2u).set(arch + ".attention.layer_norm_epsilon", 1e-12f);
    b.set(arch + ".attention.causal", false).set(arch + ".pooling_type", pooling);
    b.f32("token_embd.weight", {8, 5}, std::vector<float>(40, 0.5f));
    b.f32("token_types.weight", {8, 2}, std::vector<float>(16, 0.5f));
    b.f32("position_embd.weight", {8, 3}, std::vector<float>(24, 0.5f));
    return b;
  };
  const Config c = config_of(encoder("bert"));
  EXPECT_EQ(c.text("model_type"), "bert");
  EXPECT_EQ(c.integer("architecture.max_position_embeddings"), 3);
  EXPECT_EQ(c.integer("architecture.type_vocab_size"), 2);
  EXPECT_EQ(c.epsilon("architecture.layer_norm_eps"), 1e-12f);
  EXPECT_EQ(c.texts("pooling.modes"), (std::vector<std::string>{"cls"}));
  const Config n = config_of(encoder("nomic-bert").set("nomic-bert.rope.freq_base", 1000.0f));
  EXPECT_EQ(n.text("model_type"), "nomic_bert");
  EXPECT_EQ(n.integer("architecture.rope_theta"), 1000);
  EXPECT_HAS(failure(encoder("bert", 4)), "'cls.weight'");
  EXPECT_HAS(failure(encoder("bert").set("bert.expert_count", 8u)), "expert_count");
  const auto name = [&](const char* arch, const char* tensor) {
    const auto found =
        gguf_tensor_name(gguf_architecture(arch), tensor, std::string_view(arch) == "bert" ? c : n);
    return found ? found->name : std::string();
  };
  EXPECT_EQ(name("bert", "blk.0.ffn_up.bias"), "encoder.layer.0.intermediate.dense.bias");
  EXPECT_EQ(name("bert", "token_embd_norm.weight"), "embeddings.LayerNorm.weight");
  EXPECT_EQ(name("nomic-bert", "blk.3.ffn_gate.weight"), "encoder.layers.3.mlp.fc12.weight");
  EXPECT_EQ(name("bert", "blk.0.ffn_gate.weight"), "");
  EXPECT_EQ(name("bert", "blk.x.ffn_up.weight"), "");
}

TEST(GgufConfig, HeadsOfEncodersAreReadWhole) {
  const auto reranker = [](const std::string& arch = "bert") {
    GgufBuilder b;
    b.set("general.architecture", arch).set(arch + ".block_count", 1u).set(arch + ".context_length", 128u);
    b.set(arch + ".embedding_length", 8u).set(arch + ".feed_forward_length", 12u);
    b.set(arch + ".attention.head_count", 2u).set(arch + ".attention.layer_norm_epsilon", 1e-12f);
    b.set(arch + ".pooling_type", 4u);
    b.f32("token_embd.weight", {8, 5}, std::vector<float>(40, 0.5f));
    b.f32("position_embd.weight", {8, 3}, std::vector<float>(24, 0.5f));
    return b;
  };
  const std::vector<float> square(64, 0.5f), rows(16, 0.5f);
  const auto with = [&](GgufBuilder b, uint64_t classes) {
    return b.f32("cls.weight", {8, 8}, square).f32("cls.output.weight", {8, classes}, rows);
  };
  const Config c = config_of(with(reranker(), 1));
  EXPECT_EQ(c.text("architecture.head"), "sequence_classification");
  EXPECT_EQ(c.integer("architecture.num_labels"), 1);
  EXPECT_FALSE(c.has("pooling.modes"));
  const auto name = [&](const char* tensor) {
    return gguf_tensor_name(gguf_architecture("bert"), tensor, c)->name;
  };
  EXPECT_EQ(name("cls.weight"), "pooler.dense.weight");
  EXPECT_EQ(name("cls.output.bias"), "classifier.bias");
  const std::vector<std::string> two = {"no", "yes"};
  EXPECT_EQ(
      config_of(with(reranker().set("bert.classifier.output_labels", two), 2)).texts("architecture.labels"),
      two);
  EXPECT_HAS(failure(with(reranker().set("bert.classifier.output_labels", two), 1)),
             "2 labels for 1 classes");
  // Converters leave BERT's pooler out.
  EXPECT_HAS(failure(reranker().f32("cls.output.weight", {8, 1}, rows)), "its pooler is not in the file");
  EXPECT_HAS(failure(reranker().f32("cls.weight", {8, 1}, rows)), "its pooler is not in the file");
  EXPECT_HAS(failure(with(reranker("jina-bert-v2"), 1)), "its pooler is not in the file");
}

TEST(GgufConfig, JinasLayoutShowsInTheTensors) {
  const auto jina = [](bool code) {
    GgufBuilder b;
    const std::string arch = "jina-bert-v2";
    b.set("general.architecture", arch).set(arch + ".block_count", 1u).set(arch + ".context_length", 8192u);
    b.set(arch + ".embedding_length", 8u).set(arch + ".feed_forward_length", 12u);
    b.set(arch + ".attention.head_count", 2u).set(arch + ".attention.layer_norm_epsilon", 1e-12f);
    b.f32("token_embd.weight", {8, 5}, std::vector<float>(40, 0.5f));
    if (code) b.f32("blk.0.attn_q_norm.weight", {8}, std::vector<float>(8, 0.5f));
    return b;
  };
  const Config plain = config_of(jina(false)), code = config_of(jina(true));
  EXPECT_EQ(plain.text("model_type"), "jina_bert");
  EXPECT_EQ(plain.integer("architecture.max_position_embeddings"), 8192);
  EXPECT_EQ(code.text("model_type"), "jina_code_bert");
  const auto name = [](const Config& c, const char* tensor) {
    const auto found = gguf_tensor_name(gguf_architecture("jina-bert-v2"), tensor, c);
    return found ? std::pair(found->name, found->part) : std::pair(std::string(), -1);
  };
  EXPECT_EQ(name(plain, "blk.1.ffn_gate.weight"),
            std::pair(std::string("encoder.layer.1.mlp.gated_layers.weight"), 1));
  EXPECT_EQ(name(code, "blk.1.ffn_gate.weight"),
            std::pair(std::string("encoder.layer.1.mlp.up_gated_layer.weight"), 2));
  EXPECT_EQ(name(code, "blk.0.attn_norm_2.bias").first, "encoder.layer.0.layer_norm_1.bias");
  EXPECT_EQ(name(plain, "blk.0.attn_norm_2.bias").second, -1);
  EXPECT_EQ(name(plain, "position_embd.weight").second, -1);
}

TEST(GgufConfig, TokensThatEndATurnEndAnAnswer) {
  const Config c =
      config_of(base("gemma3")
                    .set("tokenizer.ggml.eos_token_id", 1u)
                    .set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "<eos>", "<end_of_turn>"})
                    .set("tokenizer.ggml.token_type", std::vector<int32_t>{1, 3, 3}));
  EXPECT_EQ(c.integers("generation.eos_token_id"), (std::vector<int64_t>{1, 2}));
}

TEST(GgufConfig, GemmaSaysItsWindowsAndScale) {
  const Config c = config_of(
      base("gemma3").set("gemma3.attention.sliding_window", 512u).set("gemma3.attention.key_length", 16u));
  EXPECT_EQ(c.text("model_type"), "gemma3_text");
  EXPECT_EQ(c.integer("architecture.sliding_window"), 512);
  EXPECT_EQ(c.integer("architecture.sliding_window_pattern"), 6);
  EXPECT_EQ(c.integer("architecture.query_pre_attn_scalar"), 16);
  const Config big = config_of(base("gemma2", 46).set("gemma2.attention.key_length", 16u));
  EXPECT_EQ(big.integer("architecture.query_pre_attn_scalar"), 4);  // hidden / heads in the 27B model
}

TEST(GgufConfig, AWindowMakesLlamaMistral) {
  EXPECT_EQ(config_of(base("llama").set("llama.attention.sliding_window", 32u)).text("model_type"),
            "mistral");
}

TEST(GgufConfig, WhatWouldBeComputedWronglyIsRefused) {
  EXPECT_HAS(failure(base("mamba")), "supported: llama");
  EXPECT_HAS(failure(base("llama").set("llama.expert_count", 8u)), "8 experts");
  EXPECT_HAS(failure(base("llama").set("llama.rope.scaling.type", "spiral")), "unknown rope type 'spiral'");
  EXPECT_HAS(
      failure(base("llama").set("llama.rope.dimension_count", 2u).set("llama.attention.key_length", 4u)),
      "rotated");
  EXPECT_HAS(failure(base("llama").set("llama.attention.value_length", 3u)), "value heads");
  EXPECT_HAS(failure(base("llama").set("llama.logit_scale", 2.0f)), "arithmetic");
  EXPECT_HAS(failure(base("llama").set("llama.vocab_size", 6u)), "has 5 rows");
  EXPECT_HAS(failure(base("qwen2").set("qwen2.attention.sliding_window", 6u)), "sliding window");
  EXPECT_HAS(failure(base("llama", 0)), "block_count");
  GgufBuilder infinite;
  infinite.set("general.architecture", "llama")
      .set("llama.block_count", 1u)
      .set("llama.context_length", 128u);
  infinite.set("llama.embedding_length", 8u).set("llama.feed_forward_length", 12u);
  infinite.set("llama.attention.head_count", 2u).set("llama.attention.layer_norm_rms_epsilon", INFINITY);
  EXPECT_HAS(failure(infinite.f32("token_embd.weight", {8, 1}, std::vector<float>(8))), "epsilon is inf");
  std::vector<std::string> warnings;
  config_of(base("llama").set("llama.something.new", 1u), &warnings);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_HAS(warnings[0], "llama.something.new");
}

TEST(GgufConfig, RopeScalingIsRead) {
  const Config linear = config_of(
      base("gemma3").set("gemma3.rope.scaling.type", "linear").set("gemma3.rope.scaling.factor", 8.0f));
  EXPECT_EQ(linear.text("architecture.rope_scaling.rope_type"), "linear");
  EXPECT_EQ(linear.real("architecture.rope_scaling.factor"), 8.0);
  const Config yarn = config_of(base("qwen2")
                                    .set("qwen2.rope.scaling.type", "yarn")
                                    .set("qwen2.rope.scaling.factor", 4.0f)
                                    .set("qwen2.rope.scaling.original_context_length", 32u));
  EXPECT_EQ(yarn.integer("architecture.rope_scaling.original_max_position_embeddings"), 32);
}

// The table of Llama 3.2 as its converter computes it, in f32.
std::vector<float> llama3_table(float theta, int dims, double factor, double original) {
  std::vector<float> out;
  for (int i = 0; i < dims / 2; i++) {
    const double freq = 1.0 / std::pow(static_cast<double>(theta), 2.0 * i / dims);
    const double wavelength = 2 * std::numbers::pi / freq;
    const double smooth = (original / wavelength - 1) / 3;
    out.push_back(static_cast<float>(wavelength < original / 4 ? 1
                                     : wavelength > original   ? factor
                                                               : 1 / ((1 - smooth) / factor + smooth)));
  }
  return out;
}

TEST(GgufConfig, Llama3ScalingIsRecoveredFromItsFrequencyFactors) {
  GgufBuilder b;
  b.set("general.architecture", "llama").set("llama.block_count", 1u).set("llama.context_length", 131072u);
  b.set("llama.embedding_length", 128u)
      .set("llama.feed_forward_length", 12u)
      .set("llama.attention.head_count", 2u);
  b.set("llama.attention.layer_norm_rms_epsilon", 1e-5f).set("llama.rope.freq_base", 500000.0f);
  b.f32("token_embd.weight", {128, 1}, std::vector<float>(128, 0.5f));
  GgufBuilder good = b, bad = b;
  std::vector<float> table = llama3_table(500000, 64, 32, 8192);
  const Config c = config_of(good.f32("rope_freqs.weight", {32}, table));
  EXPECT_EQ(c.text("architecture.rope_scaling.rope_type"), "llama3");
  EXPECT_EQ(c.real("architecture.rope_scaling.factor"), 32);
  EXPECT_EQ(c.real("architecture.rope_scaling.low_freq_factor"), 1);
  EXPECT_EQ(c.real("architecture.rope_scaling.high_freq_factor"), 4);
  EXPECT_EQ(c.integer("architecture.rope_scaling.original_max_position_embeddings"), 8192);
  table[20] *= 1.01f;
  EXPECT_HAS(failure(bad.f32("rope_freqs.weight", {32}, table)), "rope_freqs.weight");
}

TEST(GgufNames, FollowTheCheckpoint) {
  Config c;
  c.set("architecture.num_attention_heads", 4);
  c.set("architecture.num_key_value_heads", 2);
  const auto name = [&](const char* arch, const char* n) {
    const auto r = gguf_tensor_name(gguf_architecture(arch), n, c);
    return r ? r->name : "none";
  };
  EXPECT_EQ(name("llama", "token_embd.weight"), "model.embed_tokens.weight");
  EXPECT_EQ(name("llama", "output.weight"), "lm_head.weight");
  EXPECT_EQ(name("llama", "blk.12.attn_output.weight"), "model.layers.12.self_attn.o_proj.weight");
  EXPECT_EQ(name("llama", "blk.0.ffn_norm.weight"), "model.layers.0.post_attention_layernorm.weight");
  EXPECT_EQ(name("gemma3", "blk.0.ffn_norm.weight"), "model.layers.0.pre_feedforward_layernorm.weight");
  EXPECT_EQ(name("gemma3", "blk.0.post_ffw_norm.weight"), "model.layers.0.post_feedforward_layernorm.weight");
  EXPECT_EQ(name("qwen2", "blk.3.attn_k.bias"), "model.layers.3.self_attn.k_proj.bias");
  EXPECT_EQ(name("llama", "rope_freqs.weight"), "");
  for (const char* bad :
       {"blk.x.attn_q.weight", "blk..attn_q.weight", "blk.1.attn_q", "blk.1.other.weight", "weird",
        "blk.1.attn_q.scale", "blk.99999999999.attn_q.weight", "blk.1.post_ffw_norm.weight"})
    EXPECT_EQ(name("llama", bad), "none") << bad;
  EXPECT_EQ(gguf_tensor_name(gguf_architecture("llama"), "blk.0.attn_q.weight", c)->transform.unpermute_heads,
            4);
  EXPECT_EQ(gguf_tensor_name(gguf_architecture("llama"), "blk.0.attn_k.weight", c)->transform.unpermute_heads,
            2);
  EXPECT_EQ(gguf_tensor_name(gguf_architecture("qwen2"), "blk.0.attn_q.weight", c)->transform.unpermute_heads,
            0);
  EXPECT_EQ(gguf_tensor_name(gguf_architecture("gemma3"), "blk.0.attn_q_norm.weight", c)->transform.add, -1);
  EXPECT_EQ(gguf_tensor_name(gguf_architecture("qwen3"), "blk.0.attn_q_norm.weight", c)->transform.add, 0);
}

TEST(GgufTransforms, PermutedRowsAndPlusOneNormsAreUndone) {
  // Two heads of 4 rows; a converter writes the rows of a head in the order 0 2 1 3 (pairs j, j + d/2 side by
  // side).
  std::vector<float> rows(8);
  std::iota(rows.begin(), rows.end(), 0.0f);
  std::vector<float> permuted;
  for (int head = 0; head < 2; head++)
    for (int i = 0; i < 2; i++)
      for (int half = 0; half < 2; half++)
        permuted.push_back(rows[static_cast<size_t>(head * 4 + half * 2 + i)]);
  const std::string bytes = GgufBuilder()
                                .f32("m", {1, 8}, permuted)
                                .f32("bias", {8}, permuted)
                                .f32("norm", {3}, {1, 1.5f, 0.25f})
                                .build();
  const GgufFile file({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  std::vector<float> out(8);
  gguf_source(file.tensors()[0], "m", {2, 0})->read(0, 8, out.data());
  EXPECT_EQ(out, rows);
  gguf_source(file.tensors()[0], "m", {2, 0})->read(3, 2, out.data());  // any range of rows
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(out[1], 4);
  gguf_source(file.tensors()[1], "bias", {2, 0})->read(0, 1, out.data());
  EXPECT_EQ(out, rows);
  std::vector<float> norm(3);
  gguf_source(file.tensors()[2], "norm", {0, -1})->read(0, 1, norm.data());
  EXPECT_EQ(norm, (std::vector<float>{0, 0.5f, -0.75f}));
  EXPECT_THROW(gguf_source(file.tensors()[0], "m", {3, 0}), Error);
}

TEST(GgufModel, TensorsOutsideTheArchitectureAreListed) {
  TempDir dir;
  const std::string path = dir.write(
      "m.gguf", base("llama").f32("blk.0.odd.weight", {4}, {1, 2, 3, 4}).f32("extra", {1}, {0}).build());
  try {
    open_source_model(path);
    FAIL();
  } catch (const Error& e) {
    EXPECT_HAS(e.message(), "blk.0.odd.weight, extra");
  }
}

TEST(SourceModel, FoldersAndWrongFilesAreNamed) {
  const auto fail = [](const std::string& path) {
    try {
      open_source_model(path);
      return std::string();
    } catch (const Error& e) {
      return e.message();
    }
  };
  TempDir dir;
  EXPECT_HAS(fail(dir.path()), "neither config.json nor a GGUF file");
  EXPECT_HAS(fail(dir.path("nothing.gguf")), "cannot open");
  EXPECT_HAS(fail(dir.write("page.gguf", "<!DOCTYPE html>")), "HTML");
  EXPECT_HAS(fail(dir.write("model.bin", std::string("PK\3\4", 4) + "data/data.pkl")), "zip archive");
  EXPECT_HAS(fail(dir.write("alone.safetensors", SafetensorsBuilder().f32("a", {1}, {1}).build())),
             "no config.json");
  dir.write("page.gguf", base("llama").build());
  EXPECT_HAS(fail(dir.path()), "no tokenizer");  // the one model of the folder was opened
  dir.write("other.gguf", base("llama").build());
  EXPECT_HAS(fail(dir.path()), "other.gguf, page.gguf");
}

}  // namespace
}  // namespace cyb
