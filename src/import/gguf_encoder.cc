// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_encoder.h"

#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"

namespace cyb {
namespace {

struct Pair {
  std::string_view gguf, checkpoint;
};

constexpr Pair kGlobal[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
};
constexpr Pair kBertGlobal[] = {{"position_embd", "embeddings.position_embeddings"},
                                {"token_embd_norm", "embeddings.LayerNorm"}};
constexpr Pair kBertLayer[] = {
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
};
constexpr Pair kNomicGlobal[] = {{"token_embd_norm", "emb_ln"}};
constexpr Pair kNomicLayer[] = {
    {"attn_qkv", "attn.Wqkv"},      {"attn_output", "attn.out_proj"}, {"attn_output_norm", "norm1"},
    {"ffn_up", "mlp.fc11"},         {"ffn_gate", "mlp.fc12"},         {"ffn_down", "mlp.fc2"},
    {"layer_output_norm", "norm2"},
};

std::string_view find(std::span<const Pair> table, std::string_view name) {
  for (const Pair& p : table)
    if (p.gguf == name) return p.checkpoint;
  return {};
}

bool is_nomic(const GgufArchitecture& arch) { return std::string_view(arch.model_type) == "nomic_bert"; }

int64_t rows_of(const GgufFile& file, const char* name) {
  const GgufTensor* t = file.find(name);
  if (!t) throw error(ErrorKind::MissingTensor, "tensor '{}' is missing", name);
  return t->rows();
}

}  // namespace

Config gguf_encoder_config(const GgufFile& file, const GgufArchitecture& a,
                           std::vector<std::string>* warnings) {
  const GgufMetadata& m = file.metadata();
  const std::string prefix = std::string(a.name) + ".";
  std::set<std::string> seen;
  const auto full = [&](const char* key) {
    seen.insert(prefix + key);
    return prefix + key;
  };
  for (const char* key : {"vocab_size", "tensor_data_layout", "rope.dimension_count"}) full(key);
  if (m.has(full("attention.causal")) && m.boolean(full("attention.causal")))
    throw error(ErrorKind::UnsupportedModel, "attention is causal: this is no encoder");
  for (const char* key : {"expert_count", "moe_every_n_layers", "attention.max_alibi_bias",
                          "rope.scaling.type", "attention.clamp_kqv", "classifier.output_labels"})
    if (m.has(full(key)))
      throw error(ErrorKind::UnsupportedModel,
                  "metadata '{}' changes the arithmetic in a way that is not known here", full(key))
          .advise("import the model's safetensors folder instead");

  const bool nomic = is_nomic(a);
  Config c;
  c.set("model_type", a.model_type);
  const auto set = [&c](const char* name, ConfigValue value) {
    c.set(std::string("architecture.") + name, std::move(value));
  };
  set("vocab_size", rows_of(file, "token_embd.weight"));
  set("hidden_size", m.integer(full("embedding_length"), 1));
  set("intermediate_size", m.integer(full("feed_forward_length"), 1));
  set("num_hidden_layers", m.integer(full("block_count"), 1));
  set("num_attention_heads", m.integer(full("attention.head_count"), 1));
  set("type_vocab_size", file.find("token_types.weight") ? rows_of(file, "token_types.weight") : 0);
  // RoBERTa's table comes without its first rows: it is BERT's then.
  const int64_t context = m.integer(full("context_length"), 1);
  set("max_position_embeddings", nomic ? context : rows_of(file, "position_embd.weight"));
  const double epsilon = m.real(full("attention.layer_norm_epsilon"));
  if (!(epsilon >= 0 && epsilon < 1))
    throw error(ErrorKind::InvalidConfig, "layer_norm_epsilon is {}", epsilon);
  // Stored as f32: the decimal that was meant.
  set("layer_norm_eps", ConfigValue::from_epsilon(std::stod(fmt::format("{}", static_cast<float>(epsilon)))));
  set("hidden_act", nomic ? "silu" : "gelu");
  if (nomic) {
    const double theta = m.has(full("rope.freq_base")) ? m.real(full("rope.freq_base")) : 1000.0;
    if (!(theta > 0) || !std::isfinite(theta))
      throw error(ErrorKind::InvalidConfig, "rope.freq_base is {}", theta);
    set("rope_theta", ConfigValue::from_theta(theta));
  }
  c.set("architecture.head", "none");
  // 0 none, 1 mean, 2 first token, 3 last token, 4 a score.
  const int64_t pooling = m.has(full("pooling_type")) ? m.integer(full("pooling_type"), 0) : 1;
  if (pooling > 3)
    throw error(ErrorKind::UnsupportedModel, "pooling of the kind {}: this is no model of embeddings",
                pooling)
        .advise("import the model's safetensors folder instead");
  c.set("pooling.modes", std::vector<std::string>{pooling == 2 ? "cls" : pooling == 3 ? "last" : "mean"});
  c.set("pooling.normalize", true);  // as the programs that these files are made for
  std::string unread;
  for (const std::string& key : m.keys())
    if (key.starts_with(prefix) && !seen.contains(key)) unread += (unread.empty() ? "" : ", ") + key;
  if (!unread.empty()) warnings->push_back("metadata that nothing reads: " + unread);
  return c;
}

std::optional<GgufName> gguf_encoder_tensor_name(const GgufArchitecture& a, const std::string& name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string_view stem = std::string_view(name).substr(0, dot),
                         suffix = std::string_view(name).substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return {};
  const bool nomic = is_nomic(a);
  std::string_view part = find(kGlobal, stem);
  if (part.empty()) part = nomic ? find(kNomicGlobal, stem) : find(kBertGlobal, stem);
  if (!part.empty()) return GgufName{std::string(part) + std::string(suffix), {}};
  if (!stem.starts_with("blk.")) return {};
  const size_t end = stem.find('.', 4);
  if (end == std::string_view::npos) return {};
  const std::string_view number = stem.substr(4, end - 4), inner = stem.substr(end + 1);
  if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  part = nomic ? find(kNomicLayer, inner) : find(kBertLayer, inner);
  if (part.empty()) return {};
  return GgufName{std::string(nomic ? "encoder.layers." : "encoder.layer.") + std::string(number) + "." +
                      std::string(part) + std::string(suffix),
                  {}};
}

}  // namespace cyb
