// SPDX-License-Identifier: Apache-2.0
#include "families/t5_config.h"

#include <algorithm>
#include <cmath>

#include "families/bert_config.h"
#include "families/settings.h"

namespace cyb::t5 {
namespace {

constexpr Names kT5Names = {.encoder_layer = "encoder.block.",
                            .decoder_layer = "decoder.block.",
                            .self = "layer.0.SelfAttention.",
                            .cross = "layer.1.EncDecAttention.",
                            .q = "q",
                            .k = "k",
                            .v = "v",
                            .o = "o",
                            .self_norm = "layer.0.layer_norm",
                            .cross_norm = "layer.1.layer_norm",
                            .up = "wi",
                            .gate = "wi_0",
                            .down = "wo",
                            .encoder_ffn = "layer.1.DenseReluDense.",
                            .decoder_ffn = "layer.2.DenseReluDense.",
                            .encoder_ffn_norm = "layer.1.layer_norm",
                            .decoder_ffn_norm = "layer.2.layer_norm",
                            .stack = "",
                            .final_norm = "final_layer_norm",
                            .buckets = "relative_attention_bias",
                            .words = "shared",
                            .positions = nullptr};

constexpr Kind t5(const char* model_type, bool own_buckets, bool scales_outputs, const char* act) {
  return {.model_type = model_type,
          .names = kT5Names,
          .positions = Positions::buckets,
          .pre_norm = true,
          .rms = true,
          .own_buckets = own_buckets,
          .scales_outputs = scales_outputs,
          .act = act,
          .pad = 0,
          .eos = 1,
          .start = 0};
}

const Kind kKinds[] = {
    t5("t5", false, true, "relu"),
    t5("mt5", false, false, "gated-gelu"),
    t5("umt5", true, true, "gated-gelu"),
    {.model_type = "bart",
     .names = {.embed_norm = "layernorm_embedding", .logits_bias = "final_logits_bias"},
     .offset = 2},
    {.model_type = "mbart",
     .names = {.embed_norm = "layernorm_embedding",
               .final_norm = "layer_norm",
               .logits_bias = "final_logits_bias"},
     .pre_norm = true,
     .offset = 2},
    {.model_type = "marian",
     .names = {.positions = nullptr, .logits_bias = "final_logits_bias"},
     .positions = Positions::sinusoidal,
     .pad = 58100,
     .eos = 0,
     .start = 58100},
    {.model_type = "m2m_100",
     .names = {.final_norm = "layer_norm", .positions = nullptr},
     .positions = Positions::sinusoidal,
     .pre_norm = true,
     .offset = 2,
     .shift = 1,
     .scale_embedding = true,
     .act = "relu"},
    {.model_type = "pegasus",
     .names = {.final_norm = "layer_norm", .positions = nullptr, .logits_bias = "final_logits_bias"},
     .positions = Positions::sinusoidal,
     .pre_norm = true,
     .pad = 0,
     .eos = 1,
     .start = 0},
};

using main_part::key;
using main_part::positive;
using main_part::set_default;

int64_t token(const Config& c, const std::string& path, int64_t vocab) {
  const int64_t v = c.integer(path);
  if (v < 0 || v >= vocab) throw c.invalid(path, "{} is no token of {}", v, vocab);
  return v;
}

void complete_t5(Config& c, const Kind& k) {
  set_default(c, "d_kv", 64);
  set_default(c, "relative_attention_num_buckets", 32);
  set_default(c, "relative_attention_max_distance", 128);
  set_default(c, "layer_norm_epsilon", ConfigValue::from_epsilon(1e-6));
  set_default(c, "feed_forward_proj", k.act);
  if (!c.has(key("num_decoder_layers"))) c.set(key("num_decoder_layers"), c.integer(key("num_layers")));
  if (k.scales_outputs)
    set_default(c, "scale_decoder_outputs", c.boolean_or(key("tie_word_embeddings"), true));
  // Relative positions know no end; this is what the models were trained with.
  const int64_t trained = c.integer_or(key("n_positions"), 512);
  if (trained < 1 || trained > 1 << 24) throw c.invalid(key("n_positions"), "{} is out of range", trained);
  c.erase(key("n_positions"));
  set_default(c, "max_position_embeddings", std::max(trained, c.integer_or("tokenizer.model_max_length", 0)));
  for (const char* done : {"dense_act_fn", "is_gated_act", "dropout_rate", "initializer_factor"})
    c.erase(key(done));
}

void complete_bart(Config& c, const Kind& k) {
  set_default(c, "max_position_embeddings", 1024);
  set_default(c, "activation_function", k.act);
  set_default(c, "scale_embedding", k.scale_embedding);
  if (k.model_type == std::string("marian")) {
    set_default(c, "share_encoder_decoder_embeddings", true);
    set_default(c, "decoder_vocab_size", c.integer(key("vocab_size")));
  }
  if (k.names.logits_bias) set_default(c, "final_logits_bias", true);
  for (const char* done : {"encoder_layerdrop", "decoder_layerdrop", "num_hidden_layers", "init_std",
                           "dropout", "activation_dropout", "classifier_dropout", "classif_dropout"})
    c.erase(key(done));
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
  throw error(ErrorKind::UnsupportedModel, "model type '{}' is not T5Style", type);
}

void complete(Config& c) {
  const Kind& k = kind_of(c);
  c.erase(key("is_encoder_decoder"));
  set_default(c, "head", "language");
  set_default(c, "tie_word_embeddings", true);
  k.rms ? complete_t5(c, k) : complete_bart(c, k);
  const auto tokenizer_default = [&](const char* name, int64_t id) {
    if (!c.has(std::string("tokenizer.") + name)) c.set(std::string("tokenizer.") + name, id);
  };
  tokenizer_default("pad_token_id", k.pad);
  tokenizer_default("eos_token_id", k.eos);
  const std::string head = c.text(key("head"));
  if (head == "sequence") complete_labels(c);
  for (const char* done : {"id2label", "label2id", "num_labels"}) c.erase(key(done));
  if (head != "none") {
    const ConfigValue* start = c.find(key("decoder_start_token_id"));
    if (!c.has("generation.decoder_start_token_id"))
      c.set("generation.decoder_start_token_id", start ? *start->integer() : k.start);
    if (!c.has("generation.eos_token_id"))
      c.set("generation.eos_token_id", std::vector<int64_t>{c.integer("tokenizer.eos_token_id")});
  }
  c.erase(key("decoder_start_token_id"));
  const int64_t rows = positive(c, "max_position_embeddings");
  c.set("tokenizer.max_tokens",
        k.rms ? rows : std::min(rows, c.integer_or("tokenizer.model_max_length", rows)));
  c.set("task", head == "none" ? "embed" : head == "sequence" ? "classify" : "translate");
}

Model read(const Config& c) {
  Model m;
  const Kind& k = kind_of(c);
  m.kind = &k;
  m.hidden = positive(c, "d_model");
  m.encoder.vocab = m.decoder.vocab = positive(c, "vocab_size");
  const std::string head = c.text(key("head"));
  if (head == "none")
    m.head = Head::none;
  else if (head == "sequence")
    m.head = Head::sequence;
  else if (head != "language")
    throw c.invalid(key("head"), "unknown head '{}'", head).advise("supported: none, language, sequence");
  m.tie = c.boolean(key("tie_word_embeddings"));
  m.positions = positive(c, "max_position_embeddings");
  if (k.rms) {
    m.encoder.layers = positive(c, "num_layers");
    m.decoder.layers = positive(c, "num_decoder_layers");
    m.encoder.heads = m.decoder.heads = positive(c, "num_heads");
    m.encoder.ffn = m.decoder.ffn = positive(c, "d_ff");
    m.head_dim = positive(c, "d_kv");
    m.buckets = positive(c, "relative_attention_num_buckets");
    m.max_distance = positive(c, "relative_attention_max_distance");
    if (m.buckets < 4 || m.buckets > 1 << 16 || m.max_distance <= m.buckets / 2 || m.max_distance > 1 << 16)
      throw c.invalid(key("relative_attention_num_buckets"), "{} buckets up to the distance {}", m.buckets,
                      m.max_distance);
    if (const float eps = c.epsilon(key("layer_norm_epsilon")); !(eps >= 0 && eps < 1))
      throw c.invalid(key("layer_norm_epsilon"), "{} is out of range", eps);
    m.eps = std::stod(fmt::format("{}", c.epsilon(key("layer_norm_epsilon"))));
    std::string act = c.text(key("feed_forward_proj"));
    m.gated = act.starts_with("gated-");
    if (m.gated) act.erase(0, 6);
    if (m.gated && act == "gelu") act = "gelu_new";
    m.act = bert::activation(act, c, key("feed_forward_proj"));
    if (k.scales_outputs && c.boolean(key("scale_decoder_outputs")))
      m.output_scale = static_cast<float>(std::pow(static_cast<double>(m.hidden), -0.5));
  } else {
    m.encoder = {positive(c, "encoder_layers"), positive(c, "encoder_attention_heads"),
                 positive(c, "encoder_ffn_dim"), m.encoder.vocab};
    m.decoder = {positive(c, "decoder_layers"), positive(c, "decoder_attention_heads"),
                 positive(c, "decoder_ffn_dim"), m.decoder.vocab};
    for (const Stack& s : {m.encoder, m.decoder})
      if (m.hidden % s.heads != 0 || s.heads != m.encoder.heads)
        throw c.invalid(key("encoder_attention_heads"), "{} and {} heads over {} channels", m.encoder.heads,
                        m.decoder.heads, m.hidden);
    m.head_dim = m.hidden / m.encoder.heads;
    m.act = bert::activation(c.text(key("activation_function")), c, key("activation_function"));
    // Marian's own files.
    m.shift = c.integer_or(key("sinusoid_shift"), k.shift);
    if (m.shift < 0 || m.shift > 1) throw c.invalid(key("sinusoid_shift"), "{} is neither 0 nor 1", m.shift);
    if (c.has(key("layer_norm_eps"))) {
      const float eps = c.epsilon(key("layer_norm_eps"));
      if (!(eps >= 0 && eps < 1)) throw c.invalid(key("layer_norm_eps"), "{} is out of range", eps);
      m.eps = std::stod(fmt::format("{}", eps));
    }
    const std::string cell = c.text_or(key("decoder_cell"), "attention");
    if (cell != "attention" && cell != "ssru")
      throw c.invalid(key("decoder_cell"), "unknown cell '{}'", cell).advise("supported: attention, ssru");
    m.recurrent = cell == "ssru";
    if (c.boolean(key("scale_embedding")))
      m.embed_scale = static_cast<float>(std::sqrt(static_cast<double>(m.hidden)));
    m.shared_words = c.boolean_or(key("share_encoder_decoder_embeddings"), true);
    if (!m.shared_words) m.decoder.vocab = positive(c, "decoder_vocab_size");
    m.logits_bias = k.names.logits_bias && c.boolean(key("final_logits_bias"));
    if (k.positions == Positions::sinusoidal && (m.hidden % 2 != 0 || m.hidden < 4))
      throw c.invalid(key("d_model"), "sinusoidal positions need even channels, not {}", m.hidden);
  }
  for (const Stack& s : {m.encoder, m.decoder})
    if (s.layers > 10000)
      throw c.invalid(key(k.rms ? "num_layers" : "encoder_layers"), "{} layers", s.layers);
  m.pad = c.integer("tokenizer.pad_token_id");
  m.eos = c.integer("tokenizer.eos_token_id");
  if (m.head != Head::none) m.start = token(c, "generation.decoder_start_token_id", m.decoder.vocab);
  if (m.head == Head::sequence) m.labels = static_cast<int64_t>(c.texts(key("labels")).size());
  return m;
}

}  // namespace cyb::t5
