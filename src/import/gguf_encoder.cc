// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_encoder.h"

#include <cmath>
#include <set>
#include <span>
#include <string_view>

#include "base/error.h"

namespace cyb {
namespace {

// Names of one architecture's layers and of what stands around them; `part` > 0: half of a matrix.
struct Name {
  std::string_view gguf, checkpoint;
  int part = 0;
};
constexpr Name kGlobal[] = {
    {"token_embd", "embeddings.word_embeddings"},
    {"token_types", "embeddings.token_type_embeddings"},
};
constexpr Name kBertGlobal[] = {{"position_embd", "embeddings.position_embeddings"},
                                {"token_embd_norm", "embeddings.LayerNorm"},
                                {"cls", "pooler.dense"},
                                {"cls.output", "classifier"}};
constexpr Name kAttention[] = {
    {"attn_q", "attention.self.query"},
    {"attn_k", "attention.self.key"},
    {"attn_v", "attention.self.value"},
    {"attn_output", "attention.output.dense"},
    {"attn_output_norm", "attention.output.LayerNorm"},
};
constexpr Name kBertLayer[] = {
    {"ffn_up", "intermediate.dense"},
    {"ffn_down", "output.dense"},
    {"layer_output_norm", "output.LayerNorm"},
};
constexpr Name kNomicGlobal[] = {{"token_embd_norm", "emb_ln"}};
constexpr Name kNomicLayer[] = {
    {"attn_qkv", "attn.Wqkv"},      {"attn_output", "attn.out_proj"}, {"attn_output_norm", "norm1"},
    {"ffn_up", "mlp.fc11"},         {"ffn_gate", "mlp.fc12"},         {"ffn_down", "mlp.fc2"},
    {"layer_output_norm", "norm2"},
};
// Older files hold the halves of the gated matrix apart, newer ones all of it as ffn_up.
constexpr Name kJinaGlobal[] = {{"token_embd_norm", "embeddings.LayerNorm"}};
constexpr Name kJinaLayer[] = {{"ffn_gate", "mlp.gated_layers", 1},
                               {"ffn_up", "mlp.gated_layers", 2},
                               {"ffn_down", "mlp.wo"},
                               {"layer_output_norm", "mlp.layernorm"}};
constexpr Name kJinaCodeLayer[] = {{"ffn_up", "mlp.up_gated_layer", 1},
                                   {"ffn_gate", "mlp.up_gated_layer", 2},
                                   {"ffn_down", "mlp.down_layer"},
                                   {"layer_output_norm", "layer_norm_2"},
                                   {"attn_norm_2", "layer_norm_1"},
                                   {"attn_q_norm", "attention.self.layer_norm_q"},
                                   {"attn_k_norm", "attention.self.layer_norm_k"}};

struct Layout {
  std::string_view model_type;
  std::span<const Name> global, layer;
  bool plain_attention = true;  // kAttention too
  std::string_view layers = "encoder.layer.";
};
constexpr Layout kLayouts[] = {
    {"bert", kBertGlobal, kBertLayer},
    {"nomic_bert", kNomicGlobal, kNomicLayer, false, "encoder.layers."},
    {"jina_bert", kJinaGlobal, kJinaLayer},
    {"jina_code_bert", kJinaGlobal, kJinaCodeLayer},
};

const Layout& layout_of(const Config& config) {
  const std::string type = config.text("model_type");
  for (const Layout& l : kLayouts)
    if (l.model_type == type) return l;
  throw error(ErrorKind::UnsupportedModel, "model type '{}' has no names in GGUF files", type);
}

const Name* find(std::span<const Name> table, std::string_view name) {
  for (const Name& n : table)
    if (n.gguf == name) return &n;
  return nullptr;
}

int64_t rows_of(const GgufFile& file, const char* name) {
  const GgufTensor* t = file.find(name);
  if (!t) throw error(ErrorKind::MissingTensor, "tensor '{}' is missing", name);
  return t->rows();
}

// The head of (XLM-)RoBERTa: a layer with tanh over the first token, then one over its outcome, which is what
// BERT's pooler and classifier are.
void read_head(const GgufFile& file, const std::string& labels, int64_t hidden, Config* c) {
  const GgufTensor *first = file.find("cls.weight"), *last = file.find("cls.output.weight");
  if (!first && !last)
    throw error(ErrorKind::MissingTensor, "the model scores texts, but there is no tensor 'cls.weight'")
        .advise("import the model's safetensors folder instead");
  // The converter drops BERT's own pooler, whose outcome the classifier was trained on.
  if (!first || !last || first->shape != std::vector<int64_t>{hidden, hidden} ||
      c->text("model_type") != "bert")
    throw error(ErrorKind::UnsupportedModel, "the head is incomplete: its pooler is not in the file")
        .advise("import the model's safetensors folder instead");
  c->set("architecture.head", "sequence_classification");
  const int64_t count = last->rows();
  const GgufMetadata& m = file.metadata();
  std::vector<std::string> names;
  if (m.has(labels))
    for (const std::string_view name : m.strings(labels)) names.emplace_back(name);
  if (!names.empty() && static_cast<int64_t>(names.size()) != count)
    throw error(ErrorKind::ShapeMismatch, "{} labels for {} classes", names.size(), count);
  if (names.empty())
    c->set("architecture.num_labels", count);
  else
    c->set("architecture.labels", names);
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
                          "rope.scaling.type", "attention.clamp_kqv"})
    if (m.has(full(key)))
      throw error(ErrorKind::UnsupportedModel,
                  "metadata '{}' changes the arithmetic in a way that is not known here", full(key))
          .advise("import the model's safetensors folder instead");

  const bool nomic = std::string_view(a.model_type) == "nomic_bert";
  const bool bert = std::string_view(a.model_type) == "bert";
  Config c;
  // Which of Jina's two layouts it is shows in the tensors.
  const bool code = std::string_view(a.model_type) == "jina_bert" && file.find("blk.0.attn_q_norm.weight");
  c.set("model_type", code ? "jina_code_bert" : a.model_type);
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
  set("max_position_embeddings", bert ? rows_of(file, "position_embd.weight") : context);
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
  // 0 none, 1 mean, 2 first token, 3 last token, 4 a score.
  const int64_t pooling = m.has(full("pooling_type")) ? m.integer(full("pooling_type"), 0) : 1;
  if (pooling == 4 || file.find("cls.weight") || file.find("cls.output.weight")) {
    read_head(file, full("classifier.output_labels"), m.integer(full("embedding_length"), 1), &c);
  } else {
    if (pooling > 4) throw error(ErrorKind::UnsupportedModel, "pooling of the kind {}", pooling);
    c.set("architecture.head", "none");
    c.set("pooling.modes", std::vector<std::string>{pooling == 2 ? "cls" : pooling == 3 ? "last" : "mean"});
    c.set("pooling.normalize", true);  // as the programs that these files are made for
  }
  std::string unread;
  for (const std::string& key : m.keys())
    if (key.starts_with(prefix) && !seen.contains(key)) unread += (unread.empty() ? "" : ", ") + key;
  if (!unread.empty()) warnings->push_back("metadata that nothing reads: " + unread);
  return c;
}

std::optional<GgufName> gguf_encoder_tensor_name(const std::string& name, const Config& config) {
  const size_t dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string_view stem = std::string_view(name).substr(0, dot),
                         suffix = std::string_view(name).substr(dot);
  if (suffix != ".weight" && suffix != ".bias") return {};
  const Layout& layout = layout_of(config);
  const auto named = [&](const Name& n, const std::string& before) {
    GgufName out{before + std::string(n.checkpoint) + std::string(suffix), {}};
    out.part = n.part;
    return out;
  };
  const Name* found = find(kGlobal, stem);
  if (!found) found = find(layout.global, stem);
  if (found) return named(*found, "");
  if (!stem.starts_with("blk.")) return {};
  const size_t end = stem.find('.', 4);
  if (end == std::string_view::npos) return {};
  const std::string_view number = stem.substr(4, end - 4), inner = stem.substr(end + 1);
  if (number.empty() || number.size() > 6 || number.find_first_not_of("0123456789") != std::string_view::npos)
    return {};
  found = find(layout.layer, inner);
  if (!found && layout.plain_attention) found = find(kAttention, inner);
  if (!found) return {};
  return named(*found, std::string(layout.layers) + std::string(number) + ".");
}

}  // namespace cyb
