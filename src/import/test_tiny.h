// SPDX-License-Identifier: Apache-2.0
// Test help: a llama of one layer as a Hugging Face folder, whose parts a test may change before it is
// written.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "import/test_files.h"

namespace cyb {

inline std::vector<float> test_values(size_t n, uint64_t seed, float scale = 0.1f) {
  std::vector<float> out(n);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  for (float& v : out) {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    v = (static_cast<float>(state >> 40) / static_cast<float>(1 << 23) - 1.0f) * scale;
  }
  return out;
}

struct TinyFolder {
  struct Tensor {
    std::vector<int64_t> shape;
    std::vector<float> values;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> files;

  TinyFolder() {
    const std::string layer = "model.layers.0.";
    add("model.embed_tokens.weight", {300, 32});
    add("model.norm.weight", {32});
    add(layer + "input_layernorm.weight", {32});
    add(layer + "post_attention_layernorm.weight", {32});
    add(layer + "self_attn.q_proj.weight", {32, 32});
    add(layer + "self_attn.k_proj.weight", {16, 32});
    add(layer + "self_attn.v_proj.weight", {16, 32});
    add(layer + "self_attn.o_proj.weight", {32, 32});
    add(layer + "mlp.gate_proj.weight", {56, 32});
    add(layer + "mlp.up_proj.weight", {56, 32});
    add(layer + "mlp.down_proj.weight", {32, 56});
    files["config.json"] = R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":300,
      "hidden_size":32,"intermediate_size":56,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":2,
      "max_position_embeddings":128,"rms_norm_eps":1e-05,"tie_word_embeddings":true,"rope_theta":10000.0,
      "hidden_act":"silu","bos_token_id":1,"eos_token_id":2,"torch_dtype":"float32"})";
    files["tokenizer.json"] = tokenizer();
  }

  void add(const std::string& name, const std::vector<int64_t>& shape) {
    size_t n = 1;
    for (const int64_t d : shape) n *= static_cast<size_t>(d);
    tensors[name] = {shape, test_values(n, tensors.size() + 7)};
  }

  void write(const TempDir& dir) const {
    SafetensorsBuilder builder;
    for (const auto& [name, t] : tensors) builder.f32(name, t.shape, t.values);
    dir.write("model.safetensors", builder.build());
    for (const auto& [name, text] : files) dir.write(name, text);
  }

  // Byte-level BPE: the 256 bytes, and some merges left out.
  static std::string tokenizer() {
    std::string vocab;
    int id = 0, extra = 0;
    for (int byte = 0; byte < 256; byte++) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      const int point = printable ? byte : 256 + extra++;
      std::string text;
      if (point < 128) {
        if (point == '"' || point == '\\') text += '\\';
        text += static_cast<char>(point);
      } else {
        text += static_cast<char>(0xc0 | (point >> 6));
        text += static_cast<char>(0x80 | (point & 63));
      }
      vocab += (id ? ",\"" : "\"") + text + "\":" + std::to_string(id);
      id++;
    }
    return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[],"normalizer":null,
      "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true},
      "post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},
      "model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,
      "end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"ignore_merges":false,"vocab":{)" +
           vocab + R"(},"merges":[]}})";
  }
};

}  // namespace cyb
