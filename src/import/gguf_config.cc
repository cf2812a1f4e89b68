// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_config.h"

#include <cmath>
#include <numbers>
#include <set>

#include "base/error.h"
#include "import/gguf_encoder.h"

namespace cyb {
namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "llama", .model_type = "llama", .permuted = true},
    {.name = "qwen2", .model_type = "qwen2"},
    {.name = "qwen3", .model_type = "qwen3"},
    {.name = "smollm3", .model_type = "smollm3", .permuted = true},
    {.name = "gemma", .model_type = "gemma", .norms_plus_one = true},
    {.name = "gemma2",
     .model_type = "gemma2",
     .norms_plus_one = true,
     .sandwich = true,
     .window_pattern = 2,
     .softcaps = true,
     .odd_scale_layers = 46},
    {.name = "gemma3",
     .model_type = "gemma3_text",
     .norms_plus_one = true,
     .sandwich = true,
     .window_pattern = 6,
     .softcaps = true,
     .odd_scale_layers = 62},
    {.name = "bert", .model_type = "bert", .encoder = true},
    {.name = "nomic-bert", .model_type = "nomic_bert", .encoder = true},
    {.name = "jina-bert-v2", .model_type = "jina_bert", .encoder = true},
};

// Keys of an architecture that say what other keys and the tensors say too, or nothing about the arithmetic.
constexpr const char* kNeutral[] = {
    "vocab_size",        "tensor_data_layout", "rope.dimension_count",   "expert_count",
    "expert_used_count", "attention.causal",   "attention.value_length", "rope.scaling.finetuned"};

// Reads keys below the architecture's prefix and remembers which were read.
class Keys {
 public:
  Keys(const GgufFile& file, std::string prefix) : m(file.metadata()), prefix_(std::move(prefix) + ".") {}

  bool has(const char* key) { return m.has(full(key)); }
  int64_t integer(const char* key, int64_t low = 1) { return m.integer(full(key), low); }
  double real(const char* key) { return m.real(full(key)); }
  std::string string(const char* key) { return m.string(full(key)); }
  bool boolean(const char* key) { return m.boolean(full(key)); }
  const GgufValue* find(const char* key) { return m.find(full(key)); }
  std::string full(const char* key) {
    std::string name = prefix_ + key;
    seen_.insert(name);
    return name;
  }

  std::string unread() const {
    std::string out;
    for (const std::string& key : m.keys())
      if (key.starts_with(prefix_) && !seen_.contains(key)) out += (out.empty() ? "" : ", ") + key;
    return out;
  }

  const GgufMetadata& m;

 private:
  std::string prefix_;
  std::set<std::string> seen_;
};

std::string arch(const char* key) { return std::string("architecture.") + key; }

const GgufTensor& need_tensor(const GgufFile& file, const char* name) {
  if (const GgufTensor* t = file.find(name)) return *t;
  throw error(ErrorKind::MissingTensor, "tensor '{}' is missing", name);
}

// The factors that llama3 scaling divides each inverse frequency by, as converters write them.
std::vector<double> llama3_factors(double theta, int64_t dims, double factor, double low, double high,
                                   double original) {
  std::vector<double> out;
  for (int64_t i = 0; i < dims / 2; i++) {
    const double wavelength =
        2 * std::numbers::pi * std::pow(theta, 2.0 * static_cast<double>(i) / static_cast<double>(dims));
    if (wavelength < original / high) {
      out.push_back(1);
    } else if (wavelength > original / low) {
      out.push_back(factor);
    } else {
      const double smooth = (original / wavelength - low) / (high - low);
      out.push_back(1 / ((1 - smooth) / factor + smooth));
    }
  }
  return out;
}

// rope_freqs.weight holds the outcome of llama3 scaling; its parameters are those that reproduce it.
void read_rope_factors(const GgufFile& file, Keys& keys, double theta, int64_t head_dim, Config* config) {
  const GgufTensor* t = file.find("rope_freqs.weight");
  if (!t) return;
  if (t->type != GgufType::F32 || t->shape != std::vector<int64_t>{head_dim / 2})
    throw error(ErrorKind::ShapeMismatch, "rope_freqs.weight is not F32 of {} values", head_dim / 2);
  std::vector<float> found(static_cast<size_t>(head_dim / 2));
  gguf_decode(t->type, t->data, head_dim / 2, found.data());
  const auto reproduces = [&](double factor, double low, double high, double original) {
    const std::vector<double> wanted = llama3_factors(theta, head_dim, factor, low, high, original);
    for (size_t i = 0; i < found.size(); i++)
      if (!(std::abs(static_cast<double>(found[i]) - wanted[i]) <= 1e-4 * wanted[i])) return false;
    return true;
  };
  const double factor = static_cast<double>(found.back());
  std::vector<double> contexts = {8192};
  if (keys.has("rope.scaling.original_context_length"))
    contexts.insert(contexts.begin(),
                    static_cast<double>(keys.integer("rope.scaling.original_context_length")));
  for (double c = 1024; c <= 131072; c *= 2) contexts.push_back(c);
  for (const double original : contexts)
    for (const double low : {1.0, 2.0})
      for (const double high : {4.0, 8.0}) {
        if (!reproduces(factor, low, high, original)) continue;
        config->set(arch("rope_scaling.rope_type"), "llama3");
        config->set(arch("rope_scaling.factor"), ConfigValue::from_real(factor));
        config->set(arch("rope_scaling.low_freq_factor"), ConfigValue::from_real(low));
        config->set(arch("rope_scaling.high_freq_factor"), ConfigValue::from_real(high));
        config->set(arch("rope_scaling.original_max_position_embeddings"), static_cast<int64_t>(original));
        return;
      }
  throw error(ErrorKind::InvalidConfig,
              "rope_freqs.weight holds frequency factors that no known rope type makes")
      .advise("import the model's safetensors folder instead, whose config.json names the rope type");
}

void read_rope(const GgufFile& file, Keys& keys, int64_t head_dim, Config* config) {
  if (keys.has("rope.dimension_count")) {
    const int64_t dims = keys.integer("rope.dimension_count");
    if (dims != head_dim)
      throw error(ErrorKind::InvalidConfig, "{} rotated channels in heads of {}", dims, head_dim)
          .advise("partly rotated heads are not supported for this architecture");
  }
  const double theta = keys.has("rope.freq_base") ? keys.real("rope.freq_base") : 10000.0;
  if (!(theta > 0) || !std::isfinite(theta))
    throw error(ErrorKind::InvalidConfig, "rope.freq_base is {}", theta);
  config->set(arch("rope_theta"), ConfigValue::from_theta(theta));
  if (keys.has("rope.freq_base_swa"))
    config->set(arch("rope_local_base_freq"), ConfigValue::from_theta(keys.real("rope.freq_base_swa")));

  std::string type = keys.has("rope.scaling.type") ? keys.string("rope.scaling.type") : "";
  if (type.empty() && (keys.has("rope.scale_linear") || keys.has("rope.scaling.factor"))) type = "linear";
  if (type == "none") type.clear();
  if (!type.empty() && type != "linear" && type != "yarn")
    throw error(ErrorKind::InvalidConfig, "unknown rope type '{}'", type)
        .advise("supported: none, linear, yarn, llama3");
  if (type.empty()) return read_rope_factors(file, keys, theta, head_dim, config);
  if (file.find("rope_freqs.weight"))
    throw error(ErrorKind::InvalidConfig, "rope type '{}' and rope_freqs.weight at once", type);

  const double factor =
      keys.real(keys.has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear");
  if (!(factor > 0) || !std::isfinite(factor))
    throw error(ErrorKind::InvalidConfig, "rope scaling factor {}", factor);
  if (factor == 1 && type == "linear") return;
  config->set(arch("rope_scaling.rope_type"), type);
  config->set(arch("rope_scaling.factor"), ConfigValue::from_real(static_cast<float>(factor)));
  if (type != "yarn") return;
  if (keys.has("rope.scaling.original_context_length"))
    config->set(arch("rope_scaling.original_max_position_embeddings"),
                keys.integer("rope.scaling.original_context_length"));
  const std::pair<const char*, const char*> reals[] = {{"rope.scaling.attn_factor", "attention_factor"},
                                                       {"rope.scaling.yarn_beta_fast", "beta_fast"},
                                                       {"rope.scaling.yarn_beta_slow", "beta_slow"}};
  for (const auto& [gguf, name] : reals)
    if (keys.has(gguf))
      config->set(arch("rope_scaling.") + name, ConfigValue::from_real(static_cast<float>(keys.real(gguf))));
}

void read_windows(const GgufArchitecture& a, Keys& keys, int64_t layers, Config* config) {
  if (!keys.has("attention.sliding_window")) return;
  const int64_t window = keys.integer("attention.sliding_window", 0);
  if (window == 0) return;
  config->set(arch("sliding_window"), window);
  if (std::string_view(a.model_type) == "llama") {
    config->set("model_type", "mistral");  // the same arithmetic with a window
    return;
  }
  if (a.window_pattern == 0)
    throw error(ErrorKind::InvalidConfig, "a sliding window of {} in architecture '{}'", window, a.name)
        .advise("import the model's safetensors folder instead, whose config.json says which layers slide");
  const GgufValue* pattern = keys.find("attention.sliding_window_pattern");
  if (pattern && pattern->type == GgufValueType::array) {
    const std::vector<int64_t> slides = keys.m.integers(keys.full("attention.sliding_window_pattern"));
    if (static_cast<int64_t>(slides.size()) != layers)
      throw error(ErrorKind::InvalidConfig, "sliding_window_pattern has {} entries for {} layers",
                  slides.size(), layers);
    std::vector<std::string> types;
    for (const int64_t s : slides) types.emplace_back(s ? "sliding_attention" : "full_attention");
    config->set(arch("layer_types"), types);
  } else {
    config->set(arch("sliding_window_pattern"),
                pattern ? keys.integer("attention.sliding_window_pattern") : a.window_pattern);
  }
}

// What these architectures never have; a file that says otherwise would be computed wrongly.
void refuse_unknown_arithmetic(Keys& keys) {
  if (keys.has("expert_count") && keys.integer("expert_count", 0) > 0)
    throw error(ErrorKind::UnsupportedModel, "a mixture of {} experts", keys.integer("expert_count"))
        .advise("models with experts cannot be imported yet");
  if (keys.has("attention.causal") && !keys.boolean("attention.causal"))
    throw error(ErrorKind::UnsupportedModel, "attention is not causal: this is an encoder");
  for (const char* key :
       {"attention.clamp_kqv", "attention.max_alibi_bias", "logit_scale", "residual_scale", "embedding_scale",
        "attention.scale", "use_parallel_residual", "attention.layer_norm_epsilon",
        "router_logit_softcapping", "attention.temperature_length", "altup.num_inputs",
        "embedding_length_per_layer_input", "attention.key_length_swa", "pooling_type"})
    if (keys.has(key))
      throw error(ErrorKind::UnsupportedModel,
                  "metadata '{}' changes the arithmetic in a way that is not known here", keys.full(key))
          .advise("import the model's safetensors folder instead");
  for (const char* key : kNeutral) keys.full(key);
}

void read_tokenizer(const GgufMetadata& m, Config* config) {
  const int64_t limit = INT32_MAX;
  const std::pair<const char*, const char*> ids[] = {{"bos_token_id", "bos_token_id"},
                                                     {"eos_token_id", "eos_token_id"},
                                                     {"padding_token_id", "pad_token_id"},
                                                     {"unknown_token_id", "unk_token_id"}};
  for (const auto& [gguf, name] : ids) {
    const std::string key = std::string("tokenizer.ggml.") + gguf;
    // Some writers say "none" with −1 as u32.
    if (m.has(key) && m.integer(key, -1, UINT32_MAX) >= 0 && m.integer(key, -1, UINT32_MAX) <= limit)
      config->set(std::string("tokenizer.") + name, m.integer(key, -1, UINT32_MAX));
  }
  for (const char* name : {"add_bos_token", "add_eos_token"})
    if (m.has(std::string("tokenizer.ggml.") + name))
      config->set(std::string("tokenizer.") + name, m.boolean(std::string("tokenizer.ggml.") + name));

  // Every token that ends an answer: the metadata's, and control tokens that chat models end a turn with.
  std::set<int64_t> ends;
  for (const char* name : {"eos_token_id", "eot_token_id", "eom_token_id"}) {
    const std::string key = std::string("tokenizer.ggml.") + name;
    if (m.has(key) && m.integer(key, -1, UINT32_MAX) >= 0 && m.integer(key, -1, UINT32_MAX) <= limit)
      ends.insert(m.integer(key, -1, UINT32_MAX));
  }
  if (m.has("tokenizer.ggml.tokens") && m.has("tokenizer.ggml.token_type")) {
    const auto& tokens = m.strings("tokenizer.ggml.tokens");
    const std::vector<int64_t> types = m.integers("tokenizer.ggml.token_type");
    for (size_t i = 0; i < tokens.size() && i < types.size(); i++)
      for (const char* end : {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
                              "<|end_of_text|>", "<|eom_id|>", "<|return|>", "<EOT>"})
        if (types[i] == 3 && tokens[i] == end) ends.insert(static_cast<int64_t>(i));
  }
  if (!ends.empty()) config->set("generation.eos_token_id", std::vector<int64_t>(ends.begin(), ends.end()));
}

}  // namespace

std::string gguf_architectures() {
  std::string out;
  for (const GgufArchitecture& a : kArchitectures) out += (out.empty() ? "" : ", ") + std::string(a.name);
  return out;
}

const GgufArchitecture& gguf_architecture(const std::string& name) {
  for (const GgufArchitecture& a : kArchitectures)
    if (name == a.name) return a;
  throw error(ErrorKind::UnsupportedModel, "GGUF architecture '{}' cannot be imported", name)
      .advise("supported: {}", gguf_architectures());
}

Config gguf_config(const GgufFile& file, std::vector<std::string>* warnings) {
  const GgufArchitecture& a = gguf_architecture(file.metadata().string("general.architecture"));
  if (a.encoder) {
    Config c = gguf_encoder_config(file, a, warnings);
    read_tokenizer(file.metadata(), &c);
    return c;
  }
  Keys keys(file, a.name);
  Config c;
  c.set("model_type", a.model_type);
  refuse_unknown_arithmetic(keys);

  const int64_t layers = keys.integer("block_count"), hidden = keys.integer("embedding_length");
  const int64_t heads = keys.integer("attention.head_count");
  const int64_t kv_heads =
      keys.has("attention.head_count_kv") ? keys.integer("attention.head_count_kv") : heads;
  const int64_t head_dim = keys.has("attention.key_length")   ? keys.integer("attention.key_length")
                           : keys.has("rope.dimension_count") ? keys.integer("rope.dimension_count")
                                                              : hidden / heads;
  if (head_dim < 1) throw error(ErrorKind::InvalidConfig, "{} heads over {} channels", heads, hidden);
  if (keys.has("attention.value_length") && keys.integer("attention.value_length") != head_dim)
    throw error(ErrorKind::UnsupportedModel, "value heads of {} channels beside key heads of {}",
                keys.integer("attention.value_length"), head_dim);

  const GgufTensor& embedding = need_tensor(file, "token_embd.weight");
  const int64_t rows = embedding.rows();
  const int64_t vocab = keys.has("vocab_size") ? keys.integer("vocab_size") : rows;
  if (vocab != rows)
    throw error(ErrorKind::ShapeMismatch, "{} says {}, token_embd.weight has {} rows",
                keys.full("vocab_size"), vocab, rows);

  c.set(arch("vocab_size"), vocab);
  c.set(arch("hidden_size"), hidden);
  c.set(arch("intermediate_size"), keys.integer("feed_forward_length"));
  c.set(arch("num_hidden_layers"), layers);
  c.set(arch("num_attention_heads"), heads);
  c.set(arch("num_key_value_heads"), kv_heads);
  c.set(arch("head_dim"), head_dim);
  c.set(arch("max_position_embeddings"), keys.integer("context_length"));
  const double epsilon = keys.real("attention.layer_norm_rms_epsilon");
  if (!(epsilon >= 0 && epsilon < 1))
    throw error(ErrorKind::InvalidConfig, "{} is {}", keys.full("attention.layer_norm_rms_epsilon"), epsilon);
  c.set(arch("rms_norm_eps"), ConfigValue::from_epsilon(epsilon));
  c.set(arch("tie_word_embeddings"), file.find("output.weight") == nullptr);
  if (std::string_view(a.model_type) == "llama") {
    c.set(arch("attention_bias"), file.find("blk.0.attn_q.bias") != nullptr);
    c.set(arch("mlp_bias"), file.find("blk.0.ffn_gate.bias") != nullptr);
  }
  if (a.softcaps) {
    const std::pair<const char*, const char*> caps[] = {
        {"attn_logit_softcapping", "attn_logit_softcapping"},
        {"final_logit_softcapping", "final_logit_softcapping"}};
    for (const auto& [gguf, name] : caps)
      if (keys.has(gguf)) c.set(arch(name), ConfigValue::from_real(static_cast<float>(keys.real(gguf))));
  }
  if (a.odd_scale_layers > 0)
    c.set(arch("query_pre_attn_scalar"), layers == a.odd_scale_layers ? hidden / heads : head_dim);
  read_windows(a, keys, layers, &c);
  read_rope(file, keys, head_dim, &c);
  read_tokenizer(file.metadata(), &c);
  const std::string unread = keys.unread();
  if (!unread.empty()) warnings->push_back("metadata that nothing reads: " + unread);
  return c;
}

}  // namespace cyb
