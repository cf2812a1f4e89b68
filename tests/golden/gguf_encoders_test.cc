// SPDX-License-Identifier: Apache-2.0
// Tiny seeded encoders written as GGUF files under llama.cpp's names and imported, against transformers in
// f32.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "import/import.h"
#include "import/test_gguf.h"
#include "support/golden.h"
#include "support/imported_model.h"
#include "tasks/text_encoder.h"

namespace cyb {
namespace {

using test::EncoderGolden;
using test::TensorRule;

struct Case {
  const char *name, *golden, *architecture;
  uint32_t pooling;
  int64_t unused_positions;  // rows before the first one that a text uses, which converters cut off
  bool halves;               // the gated matrix in two tensors
};

// The checkpoint's name in llama.cpp's words; none: converters leave the tensor out.
std::string gguf_name(std::string name) {
  static const std::pair<const char*, const char*> kParts[] = {
      {"roberta.", ""},
      {"bert.", ""},
      {"classifier.dense.", "cls."},
      {"classifier.out_proj.", "cls.output."},
      {"embeddings.LayerNorm.", "token_embd_norm."},
      {"embeddings.word_embeddings.", "token_embd."},
      {"embeddings.position_embeddings.", "position_embd."},
      {"embeddings.token_type_embeddings.", "token_types."},
      {"encoder.layer.", "blk."},
      {"attention.self.layer_norm_q.", "attn_q_norm."},
      {"attention.self.layer_norm_k.", "attn_k_norm."},
      {"attention.self.query.", "attn_q."},
      {"attention.self.key.", "attn_k."},
      {"attention.self.value.", "attn_v."},
      {"attention.output.dense.", "attn_output."},
      {"attention.output.LayerNorm.", "attn_output_norm."},
      {"intermediate.dense.", "ffn_up."},
      {"mlp.gated_layers.", "ffn_up."},
      {"mlp.up_gated_layer.", "ffn_up."},
      {"mlp.wo.", "ffn_down."},
      {"mlp.down_layer.", "ffn_down."},
      {"mlp.layernorm.", "layer_output_norm."},
      {"layer_norm_1.", "attn_norm_2."},
      {"layer_norm_2.", "layer_output_norm."},
      {".output.dense.", ".ffn_down."},
      {".output.LayerNorm.", ".layer_output_norm."},
  };
  if (name.find("pooler.") != std::string::npos) return {};
  for (const auto& [checkpoint, gguf] : kParts)
    if (const size_t at = name.find(checkpoint); at != std::string::npos)
      name.replace(at, std::string(checkpoint).size(), gguf);
  return name;
}

class GgufEncoder : public testing::TestWithParam<Case>, protected test::ImportedModel {
 protected:
  std::string bytes(const EncoderGolden& golden) const {
    const Case& c = GetParam();
    GgufBuilder b;
    const std::string arch = c.architecture;
    std::vector<std::string> tokens = {"<s>", "<pad>", "</s>", "<unk>"};
    while (static_cast<int64_t>(tokens.size()) < golden.vocab)
      tokens.push_back("t" + std::to_string(tokens.size()));
    b.set("general.architecture", arch).set(arch + ".block_count", 2u).set(arch + ".context_length", 64u);
    b.set(arch + ".embedding_length", 32u).set(arch + ".feed_forward_length", 56u);
    b.set(arch + ".attention.head_count", 4u).set(arch + ".attention.causal", false);
    b.set(arch + ".attention.layer_norm_epsilon", c.unused_positions > 0 ? 1e-5f : 1e-12f);
    b.set(arch + ".pooling_type", c.pooling);
    b.set("tokenizer.ggml.model", "t5").set("tokenizer.ggml.tokens", tokens);
    b.set("tokenizer.ggml.scores", std::vector<float>(tokens.size(), -1));
    b.set("tokenizer.ggml.unknown_token_id", 3u).set("tokenizer.ggml.bos_token_id", 0u);
    b.set("tokenizer.ggml.eos_token_id", 2u);
    const auto add = [&](const std::string& name, const std::vector<int64_t>& shape,
                         std::vector<float> values) {
      b.f32(name, std::vector<uint64_t>(shape.rbegin(), shape.rend()), values);
    };
    for (const TensorRule& rule : golden.tensors) {
      const std::string name = gguf_name(rule.name);
      if (name.empty()) continue;
      std::vector<float> values = test::generate(golden.seed, rule);
      std::vector<int64_t> shape = rule.shape;
      if (name == "position_embd.weight") {
        shape[0] -= c.unused_positions;
        values.erase(values.begin(), values.begin() + c.unused_positions * shape[1]);
      }
      if (c.halves && name.ends_with("ffn_up.weight")) {
        shape[0] /= 2;
        const auto middle = values.begin() + shape[0] * shape[1];
        const bool gate_first = rule.name.find("up_gated") == std::string::npos;
        const std::string gate = name.substr(0, name.size() - 9) + "gate.weight";
        add(gate_first ? gate : name, shape, {values.begin(), middle});
        add(gate_first ? name : gate, shape, {middle, values.end()});
        continue;
      }
      add(name, shape, values);
    }
    return b.build();
  }
};

TEST_P(GgufEncoder, ValuesAreTheReferencesOnBothPaths) {
  const EncoderGolden golden = test::read_encoder_golden(GetParam().golden);
  folder_ = std::filesystem::temp_directory_path() /
            (std::string("cyb-gguf-") + GetParam().name + "-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder_);
  const std::string source = (folder_ / "m.gguf").string();
  std::ofstream(source, std::ios::binary) << bytes(golden);
  ImportOptions o;
  o.encoding = EncodingPolicy::u32;
  o.out = (folder_ / "m.model").string();
  o.threads = 2;
  const std::string path = import_model(source, o).path;
  const bool scores = golden.output == "logits";
  on_all_paths([&](const OpenOptions& options, const char* what) {
    TextEncoder m(path, options, scores ? "classify" : "encode");
    int compared = 0;
    std::vector<TextEncoder::Input> inputs;
    for (const auto& s : golden.sequences) inputs.push_back({s.ids, s.types, false, s.task});
    m.run(inputs, 1, [&](size_t i, std::span<const float> v) {
      // RoBERTa does not count padding inside a text, which no text has; these files cannot say so.
      const std::vector<int32_t>& ids = golden.sequences[i].ids;
      if (GetParam().unused_positions > 0 && std::count(ids.begin(), ids.end(), 1) > 0) return;
      compared++;
      const std::vector<float>& wanted = golden.sequences[i].values;
      ASSERT_EQ(v.size(), wanted.size()) << what;
      const auto rows = static_cast<int64_t>(scores ? 1 : golden.sequences[i].ids.size());
      const int64_t width = static_cast<int64_t>(wanted.size()) / rows;
      for (int64_t r = 0; r < rows; r++)
        EXPECT_LE(test::row_error(v.data() + r * width, wanted.data() + r * width, width), 1e-4)
            << what << ", sequence " << i << ", row " << r;
    });
    EXPECT_GE(compared, 2);
  });
}

INSTANTIATE_TEST_SUITE_P(BertStyle, GgufEncoder,
                         testing::Values(Case{"bert", "bert", "bert", 1, 0, false},
                                         Case{"reranker", "xlm_roberta_reranker", "bert", 4, 2, false},
                                         Case{"jina", "jina_v2", "jina-bert-v2", 1, 0, false},
                                         Case{"jina_halves", "jina_v2", "jina-bert-v2", 1, 0, true},
                                         Case{"jina_code", "jina_v2_code", "jina-bert-v2", 1, 0, false},
                                         Case{"jina_code_halves", "jina_v2_code", "jina-bert-v2", 1, 0,
                                              true}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace cyb
