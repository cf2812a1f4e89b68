// SPDX-License-Identifier: Apache-2.0
#include "families/bert_config.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "families/rope.h"
#include "families/settings.h"

namespace cyb::bert {
namespace {

using main_part::key;
using main_part::positive;
using main_part::set_default;

void rename(Config& c, const char* old_name, const char* name) {
  const ConfigValue* old = c.find(key(old_name));
  if (!old) return;
  const ConfigValue value = *old;
  if (!c.has(key(name))) c.set(key(name), value);
  c.erase(key(old_name));
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

// "c2p|p2c" or a list of both.
void complete_relative(Config& c) {
  set_default(c, "relative_attention", false);
  set_default(c, "position_biased_input", true);
  set_default(c, "share_att_key", false);
  set_default(c, "legacy", true);
  set_default(c, "norm_rel_ebd", "none");
  set_default(c, "pooler_hidden_act", "gelu");
  set_default(c, "position_buckets", int64_t{-1});
  set_default(c, "max_relative_positions", int64_t{-1});
  std::string terms;
  if (const ConfigValue* v = c.find(key("pos_att_type")); v && v->is_text())
    terms = *v->text();
  else if (v)
    for (const std::string& one : c.texts(key("pos_att_type"))) terms += one + "|";
  for (char& ch : terms) ch = static_cast<char>(std::tolower(static_cast<unsigned char>(ch)));
  std::vector<std::string> list;
  for (const char* one : {"c2p", "p2c"})
    if (terms.find(one) != std::string::npos) list.emplace_back(one);
  if (terms.find("p2p") != std::string::npos)
    throw c.invalid(key("pos_att_type"), "scores of positions with positions are not supported")
        .advise("supported: c2p, p2c");
  c.set(key("pos_att_type"), list);
}

// Frequencies for a context `factor` times as long: base · factor, and all of them less by factor^(2/d).
void complete_ntk(Config& c, const Kind& k) {
  const std::string at = key("rope_scaling");
  if (c.text_or(at + ".type", c.text_or(at + ".rope_type", "")) != "ntk") return;
  if (c.has(at + ".mixed_b"))
    throw c.invalid(at + ".mixed_b", "this kind of frequencies is not supported")
        .advise("supported: ntk without mixed_b");
  const double factor = c.real(at + ".factor"), theta = c.real_or(key("rope_theta"), k.theta);
  if (!(factor >= 1 && factor <= 1e6)) throw c.invalid(at + ".factor", "{} is out of range", factor);
  const auto dim = static_cast<double>(c.integer(key("hidden_size")) / c.integer(key("num_attention_heads")));
  c.erase(at);
  c.set(at + ".rope_type", "linear");
  c.set(at + ".factor", ConfigValue::from_real(std::pow(factor, 2 / dim)));
  c.set(key("rope_theta"), ConfigValue::from_theta(theta * factor));
}

void complete_layers(Config& c, const Kind& k) {
  if (k.theta == 0) return;
  if (k.local_theta == 0) {
    rename(c, "rotary_emb_base", "rope_theta");
    complete_ntk(c, k);
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

void complete(Config& c) {
  const Kind& k = kind_of(c);
  for (const auto& [old_name, name] : {std::pair{"dim", "hidden_size"},
                                       {"hidden_dim", "intermediate_size"},
                                       {"n_layers", "num_hidden_layers"},
                                       {"n_heads", "num_attention_heads"},
                                       {"activation", "hidden_act"}})
    rename(c, old_name, name);
  if (k.positions == Positions::none && !k.pre_norm) c.erase(key("position_embedding_type"));
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
  if (k.names.types) set_default(c, "type_vocab_size", k.types);
  if (k.relative) complete_relative(c);
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
                : head == "question_answering"      ? "answer"
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

namespace {

void read_relative(const Config& c, Model* m) {
  Model::Relative& r = m->relative;
  r.on = c.boolean(key("relative_attention"));
  for (const std::string& term : c.texts(key("pos_att_type"))) (term == "c2p" ? r.c2p : r.p2c) = true;
  r.shared = c.boolean(key("share_att_key"));
  r.norm = c.text(key("norm_rel_ebd")).find("layer_norm") != std::string::npos;
  r.buckets = c.integer(key("position_buckets"));
  r.most = c.integer(key("max_relative_positions"));
  if (r.most < 1) r.most = m->positions;
  // Tables of distances are made from these.
  if (r.buckets < 2) r.buckets = 0;
  if (r.most > 1 << 20 || r.buckets > 1 << 16 || (r.buckets > 0 && r.most < r.buckets / 2 + 2))
    throw c.invalid(key("position_buckets"), "{} buckets for distances up to {}", r.buckets, r.most);
  m->position_table = c.boolean(key("position_biased_input"));
  if (!c.boolean(key("legacy"))) m->head_names = m->kind->other_head;
  m->pooler_act = c.text(key("pooler_hidden_act"));
  m->conv.kernel = c.integer_or(key("conv_kernel_size"), 0);
  m->conv.groups = c.integer_or(key("conv_groups"), 1);
  if (m->conv.kernel < 0 || m->conv.kernel > 1024 || m->conv.groups < 1 || m->hidden % m->conv.groups != 0 ||
      (m->conv.kernel > 0 && m->conv.kernel % 2 == 0))
    throw c.invalid(key("conv_kernel_size"), "a convolution of {} positions in {} groups", m->conv.kernel,
                    m->conv.groups);
  if (m->conv.kernel > 0) m->conv.act = activation(c.text_or(key("conv_act"), "tanh"), c, key("conv_act"));
}

void read_tasks(const Config& c, Model* m) {
  m->tasks.count = static_cast<int64_t>(c.texts(key("lora_adaptations")).size());
  m->tasks.rank = positive(c, "lora_rank");
  m->tasks.scale = c.real(key("lora_alpha")) / static_cast<double>(m->tasks.rank);
  if (m->tasks.count < 1 || m->tasks.count > 1024 || m->tasks.rank > 4096 ||
      m->vocab > INT32_MAX / m->tasks.count || !std::isfinite(m->tasks.scale))
    throw c.invalid(key("lora_rank"), "{} tasks of rank {}", m->tasks.count, m->tasks.rank);
}

}  // namespace

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
  m.position_table = k.names.positions != nullptr;
  m.head_names = k.head;
  if (k.relative) read_relative(c, &m);
  if (c.has(key("lora_adaptations"))) read_tasks(c, &m);
  const std::string head = c.text(key("head"));
  if (head == "masked_lm")
    m.head = Head::masked_lm;
  else if (head == "sequence_classification")
    m.head = Head::sequence;
  else if (head == "token_classification")
    m.head = Head::tokens;
  else if (head == "question_answering")
    m.head = Head::answers;
  else if (head != "none")
    throw c.invalid(key("head"), "unknown head '{}'", head)
        .advise(
            "supported: none, masked_lm, sequence_classification, token_classification, question_answering");
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
