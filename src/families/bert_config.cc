// SPDX-License-Identifier: Apache-2.0
#include "families/bert_config.h"

#include <algorithm>

#include "families/rope.h"

namespace cyb::bert {
namespace {

constexpr HeadNames kRobertaHead = {.transform = "lm_head.dense",
                                    .transform_norm = "lm_head.layer_norm",
                                    .decoder = "lm_head.decoder.weight",
                                    .decoder_bias = "lm_head.bias",
                                    .transform_act = "gelu",
                                    .pooler = "classifier.dense",
                                    .classifier = "classifier.out_proj"};

constexpr Kind roberta(const char* model_type) {
  return {.model_type = model_type, .head = kRobertaHead, .positions = Positions::after_pad, .pad = 1};
}

const Kind kKinds[] = {
    {.model_type = "bert"},
    roberta("roberta"),
    roberta("xlm-roberta"),
    roberta("camembert"),
    {.model_type = "electra",
     .head = {.transform = "generator_predictions.dense",
              .transform_norm = "generator_predictions.LayerNorm",
              .decoder = "generator_lm_head.weight",
              .decoder_bias = "generator_lm_head.bias",
              .transform_act = "gelu",
              .pooler = "classifier.dense",
              .pooler_act = "gelu",
              .classifier = "classifier.out_proj"}},
    {.model_type = "distilbert",
     .names = {.types = nullptr,
               .layer = "transformer.layer.",
               .q = "attention.q_lin",
               .k = "attention.k_lin",
               .v = "attention.v_lin",
               .o = "attention.out_lin",
               .attn_norm = "sa_layer_norm",
               .up = "ffn.lin1",
               .down = "ffn.lin2",
               .ffn_norm = "output_layer_norm"},
     .head = {.transform = "vocab_transform",
              .transform_norm = "vocab_layer_norm",
              .decoder = "vocab_projector.weight",
              .decoder_bias = "vocab_projector.bias",
              .pooler = "pre_classifier",
              .pooler_act = "relu"},
     .types = 0},
    {.model_type = "mpnet",
     .names = {.types = nullptr,
               .q = "attention.attn.q",
               .k = "attention.attn.k",
               .v = "attention.attn.v",
               .o = "attention.attn.o",
               .attn_norm = "attention.LayerNorm",
               .buckets = "encoder.relative_attention_bias.weight"},
     .head = kRobertaHead,
     .positions = Positions::after_pad,
     .types = 0,
     .pad = 1},
    {.model_type = "modernbert",
     .names = {.words = "embeddings.tok_embeddings",
               .positions = nullptr,
               .types = nullptr,
               .embed_norm = "embeddings.norm",
               .layer = "layers.",
               .qkv = "attn.Wqkv",
               .o = "attn.Wo",
               .attn_norm = "attn_norm",
               .gate_up = "mlp.Wi",
               .down = "mlp.Wo",
               .ffn_norm = "mlp_norm",
               .final_norm = "final_norm"},
     .head = {.transform = "head.dense",
              .transform_norm = "head.norm",
              .decoder = "decoder.weight",
              .decoder_bias = "decoder.bias",
              .pooler = "head.dense",
              .pooler_act = nullptr,
              .pooler_norm = "head.norm",
              .tokens_pooled = true},
     .positions = Positions::none,
     .pre_norm = true,
     .biases = false,
     .eps = 1e-5,
     .eps_key = "norm_eps",
     .act_key = "hidden_activation",
     .max_positions = 8192,
     .types = 0,
     .theta = 160000,
     .local_theta = 10000},
    {.model_type = "nomic_bert",
     .names = {.positions = nullptr,
               .embed_norm = "emb_ln",
               .layer = "encoder.layers.",
               .qkv = "attn.Wqkv",
               .o = "attn.out_proj",
               .attn_norm = "norm1",
               .up = "mlp.fc11",
               .gate = "mlp.fc12",
               .down = "mlp.fc2",
               .ffn_norm = "norm2"},
     .positions = Positions::none,
     .biases = false,
     .act = "silu",
     .max_positions = 2048,
     .theta = 1000},
};

std::string key(const char* name) { return std::string("architecture.") + name; }

void set_default(Config& c, const char* name, ConfigValue value) {
  if (!c.has(key(name))) c.set(key(name), std::move(value));
}

void rename(Config& c, const char* old_name, const char* name) {
  const ConfigValue* old = c.find(key(old_name));
  if (!old) return;
  const ConfigValue value = *old;
  if (!c.has(key(name))) c.set(key(name), value);
  c.erase(key(old_name));
}

int64_t positive(const Config& c, const char* name) {
  const int64_t v = c.integer(key(name));
  if (v < 1 || v > (int64_t{1} << 31)) throw c.invalid(key(name), "{} is out of range", v);
  return v;
}

// {"0": "NO", "1": "YES"} → ["NO", "YES"].
void complete_labels(Config& c) {
  constexpr int64_t kMost = 1 << 20;
  const ConfigValue* ids = c.find(key("id2label"));
  std::vector<std::string> labels;
  if (ids && ids->is_table() && !ids->table()->empty()) {
    const ConfigTable& table = *ids->table();
    for (size_t i = 0; i < table.size(); i++) {
      const ConfigValue* name = table.find(std::to_string(i));
      if (!name || !name->is_text()) throw c.invalid(key("id2label"), "no text for label {}", i);
      labels.push_back(*name->text());
    }
  } else {
    const int64_t count = c.integer_or(key("num_labels"), 2);
    if (count < 1 || count > kMost) throw c.invalid(key("num_labels"), "{} labels", count);
    for (int64_t i = 0; i < count; i++) labels.push_back("LABEL_" + std::to_string(i));
  }
  set_default(c, "labels", labels);
}

// What cross-encoders make of their one logit.
void complete_scores(Config& c) {
  std::string name = c.text_or(key("sbert_ce_default_activation_function"), "");
  if (name.empty() && c.find(key("sentence_transformers")))
    name = c.text_or(key("sentence_transformers.activation_fn"), "");
  for (const char* done : {"sbert_ce_default_activation_function", "sentence_transformers"})
    c.erase(key(done));
  if (!name.empty()) set_default(c, "score_activation", name.ends_with("Identity") ? "identity" : "sigmoid");
}

void complete_layers(Config& c, const Kind& k) {
  if (k.theta == 0) return;
  if (k.local_theta == 0) {
    rename(c, "rotary_emb_base", "rope_theta");
    return complete_rope(c, k.theta);
  }
  rename(c, "local_attention_window", "local_attention");
  set_default(c, "local_attention", 128);
  const int64_t every = c.integer_or(key("global_attn_every_n_layers"), 3);
  if (every < 1) throw c.invalid(key("global_attn_every_n_layers"), "{} layers", every);
  c.erase(key("global_attn_every_n_layers"));
  if (!c.has(key("layer_types"))) {
    std::vector<std::string> types;
    for (int64_t i = 0; i < positive(c, "num_hidden_layers") && i < 10000; i++)
      types.emplace_back(i % every == 0 ? "full_attention" : "sliding_attention");
    c.set(key("layer_types"), types);
  }
  const auto base = [&](const char* old, double theta) {
    const ConfigValue* found = c.find(key(old));
    return found ? *found : ConfigValue::from_theta(theta);
  };
  const ConfigValue full = base("global_rope_theta", k.theta),
                    local = base("local_rope_theta", k.local_theta);
  for (const auto& [type, theta] : {std::pair{"full_attention", full}, {"sliding_attention", local}}) {
    const std::string at = key("rope_parameters.") + type;
    if (!c.has(at + ".rope_type")) c.set(at + ".rope_type", "default");
    if (!c.has(at + ".rope_theta")) c.set(at + ".rope_theta", theta);
  }
  for (const char* old : {"global_rope_theta", "local_rope_theta"}) c.erase(key(old));
}

}  // namespace

std::vector<const char*> model_types() {
  std::vector<const char*> out;
  for (const Kind& k : kKinds) out.push_back(k.model_type);
  return out;
}

const Kind& kind_of(const Config& config) {
  const std::string type = config.text("model_type");
  for (const Kind& k : kKinds)
    if (type == k.model_type) return k;
  throw error(ErrorKind::UnsupportedModel, "model type '{}' is not BertStyle", type);
}

void complete(Config& c) {
  const Kind& k = kind_of(c);
  for (const auto& [old_name, name] : {std::pair{"dim", "hidden_size"},
                                       {"hidden_dim", "intermediate_size"},
                                       {"n_layers", "num_hidden_layers"},
                                       {"n_heads", "num_attention_heads"},
                                       {"activation", "hidden_act"}})
    rename(c, old_name, name);
  const int64_t heads = positive(c, "num_attention_heads"), hidden = positive(c, "hidden_size");
  if (hidden % heads != 0)
    throw c.invalid(key("num_attention_heads"), "{} heads over {} channels", heads, hidden);
  if (const std::string kind = c.text_or(key("position_embedding_type"), "absolute"); kind != "absolute")
    throw c.invalid(key("position_embedding_type"), "positions of the kind '{}' are not supported", kind)
        .advise("supported: absolute");
  if (c.boolean_or(key("add_cross_attention"), false))
    throw c.invalid(key("add_cross_attention"), "a decoder is not an encoder of this family");
  set_default(c, k.eps_key, ConfigValue::from_epsilon(k.eps));
  set_default(c, k.act_key, k.act);
  set_default(c, "max_position_embeddings", k.max_positions);
  set_default(c, "tie_word_embeddings", true);
  if (k.types > 0) set_default(c, "type_vocab_size", k.types);
  if (k.positions == Positions::after_pad)
    set_default(c, "pad_token_id", c.integer_or("tokenizer.pad_token_id", k.pad));
  if (k.names.buckets) set_default(c, "relative_attention_num_buckets", 32);
  set_default(c, "head", "none");
  const std::string head = c.text(key("head"));
  if (head == "sequence_classification" || head == "token_classification") complete_labels(c);
  for (const char* done : {"id2label", "label2id", "num_labels"}) c.erase(key(done));
  complete_layers(c, k);
  // Of the position table's rows, those that a text can use.
  const int64_t rows = positive(c, "max_position_embeddings");
  const int64_t usable =
      k.positions == Positions::after_pad ? rows - c.integer(key("pad_token_id")) - 1 : rows;
  if (usable < 1) throw c.invalid(key("max_position_embeddings"), "{} leaves none for a text", rows);
  c.set("tokenizer.max_tokens", std::min(usable, c.integer_or("tokenizer.model_max_length", usable)));
  complete_scores(c);
  const bool one = c.has(key("labels")) && c.find(key("labels"))->array()->size() == 1;
  c.set("task", head == "masked_lm"                 ? "fill-mask"
                : head == "token_classification"    ? "ner"
                : head != "sequence_classification" ? "embed"
                : one                               ? "rerank"
                                                    : "classify");
}

ir::Activation activation(const std::string& name, const Config& c, const std::string& path) {
  using ir::Activation;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast") return Activation::gelu_tanh;
  if (name == "quick_gelu") return Activation::gelu_quick;
  if (name == "relu") return Activation::relu;
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "tanh") return Activation::tanh;
  throw c.invalid(path, "unknown activation '{}'", name)
      .advise("supported: gelu, gelu_new, gelu_pytorch_tanh, gelu_fast, quick_gelu, relu, silu, tanh");
}

Model read(const Config& c) {
  Model m;
  const Kind& k = kind_of(c);
  m.kind = &k;
  m.vocab = positive(c, "vocab_size");
  m.hidden = positive(c, "hidden_size");
  m.embedding = c.has(key("embedding_size")) ? positive(c, "embedding_size") : m.hidden;
  m.layers = positive(c, "num_hidden_layers");
  m.heads = positive(c, "num_attention_heads");
  if (m.layers > 10000 || m.hidden % m.heads != 0)
    throw c.invalid(key("num_hidden_layers"), "{} layers, {} heads over {} channels", m.layers, m.heads,
                    m.hidden);
  m.head_dim = m.hidden / m.heads;
  m.ffn = positive(c, "intermediate_size");
  m.positions = positive(c, "max_position_embeddings");
  m.types = k.names.types ? c.integer(key("type_vocab_size")) : 0;
  if (m.types < 0 || m.types > 1 << 20) throw c.invalid(key("type_vocab_size"), "{} types", m.types);
  m.pad = k.positions == Positions::after_pad ? c.integer(key("pad_token_id")) : k.pad;
  if (const float eps = c.epsilon(key(k.eps_key)); !(eps >= 0 && eps < 1))
    throw c.invalid(key(k.eps_key), "{} is out of range", eps);
  m.eps = std::stod(fmt::format("{}", c.epsilon(key(k.eps_key))));  // the decimal that people write
  m.act = activation(c.text(key(k.act_key)), c, key(k.act_key));
  m.tie = c.boolean(key("tie_word_embeddings"));
  m.attention_bias = c.boolean_or(key("attention_bias"), k.biases);
  m.mlp_bias = c.boolean_or(key("mlp_bias"), k.biases);
  m.norm_bias = k.pre_norm ? c.boolean_or(key("norm_bias"), false) : true;
  m.decoder_bias = c.boolean_or(key("decoder_bias"), true);
  m.mean_pooled = c.text_or(key("classifier_pooling"), "cls") == "mean";
  if (k.names.buckets) m.buckets = positive(c, "relative_attention_num_buckets");
  const std::string head = c.text(key("head"));
  if (head == "masked_lm")
    m.head = Head::masked_lm;
  else if (head == "sequence_classification")
    m.head = Head::sequence;
  else if (head == "token_classification")
    m.head = Head::tokens;
  else if (head != "none")
    throw c.invalid(key("head"), "unknown head '{}'", head)
        .advise("supported: none, masked_lm, sequence_classification, token_classification");
  if (m.head == Head::sequence || m.head == Head::tokens)
    m.labels = static_cast<int64_t>(c.texts(key("labels")).size());
  std::vector<std::string> types;
  if (k.local_theta > 0) types = c.texts(key("layer_types"));
  if (k.local_theta > 0 && static_cast<int64_t>(types.size()) != m.layers)
    throw c.invalid(key("layer_types"), "{} entries for {} layers", types.size(), m.layers);
  for (int64_t i = 0; i < m.layers; i++) {
    Model::Layer layer;
    if (k.local_theta > 0) {
      const std::string& type = types[static_cast<size_t>(i)];
      if (type == "sliding_attention")
        layer.window = positive(c, "local_attention");
      else if (type != "full_attention")
        throw c.invalid(key("layer_types"), "unknown kind of layer '{}'", type)
            .advise("supported: full_attention, sliding_attention");
      layer.rope = rope_attrs(c, key("rope_parameters.") + type, m.head_dim);
    } else if (k.theta > 0) {
      layer.rope = rope_attrs(c, key("rope_parameters"), m.head_dim);
    }
    m.layer.push_back(std::move(layer));
  }
  return m;
}

}  // namespace cyb::bert
