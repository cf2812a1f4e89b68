// SPDX-License-Identifier: Apache-2.0
// One decoder for every model of this form; what differs between them is data, read from the config.
#include "families/llama_style.h"

#include <cmath>
#include <string>

#include "families/rope.h"
#include "families/settings.h"
#include "ir/builder.h"
#include "ir/ops/attention.h"
#include "ir/ops/common.h"
#include "ir/ops/matmul.h"

namespace cyb {
namespace {

using namespace ir;

// What the reference class of a model type assumes where the config is silent, and what no config says.
struct Defaults {
  const char* model_type;
  double theta = 10000;
  int64_t context = 2048;
  int64_t head_dim = 0;  // 0: hidden_size / heads
  bool tie = false;
  bool qkv_bias = false;  // on q, k, v whatever the config says
  bool qk_norm = false;
  bool sandwich = false;  // a norm behind each branch too
  bool norm_plus_one = false;
  bool embed_scale = false;
  bool query_scalar = false;  // attention scale from query_pre_attn_scalar
  bool softcaps = false;
  double attn_softcap = 0, final_softcap = 0;
  const char* act_key = "hidden_act";
  const char* act = "silu";
  enum Window { never, always, opt_in, alternating } window = never;
  int64_t window_size = 4096;
  int64_t window_pattern = 0;  // alternating: every n-th layer is full
  double local_theta = 0;      // sliding layers have their own base
  bool no_rope_layers = false;
};

constexpr const char* kGelu = "gelu_pytorch_tanh";
const Defaults kDefaults[] = {
    {.model_type = "llama"},
    {.model_type = "mistral", .context = 131072, .window = Defaults::always},
    {.model_type = "qwen2", .context = 32768, .qkv_bias = true, .window = Defaults::opt_in},
    {.model_type = "qwen3", .context = 32768, .head_dim = 128, .qk_norm = true, .window = Defaults::opt_in},
    {.model_type = "smollm3",
     .theta = 2000000,
     .context = 32768,
     .tie = true,
     .window = Defaults::opt_in,
     .no_rope_layers = true},
    {.model_type = "gemma",
     .context = 8192,
     .head_dim = 256,
     .tie = true,
     .norm_plus_one = true,
     .embed_scale = true,
     .act_key = "hidden_activation",
     .act = kGelu},
    {.model_type = "gemma2",
     .context = 8192,
     .head_dim = 256,
     .tie = true,
     .sandwich = true,
     .norm_plus_one = true,
     .embed_scale = true,
     .query_scalar = true,
     .softcaps = true,
     .attn_softcap = 50,
     .final_softcap = 30,
     .act_key = "hidden_activation",
     .act = kGelu,
     .window = Defaults::alternating,
     .window_pattern = 2},
    {.model_type = "gemma3_text",
     .theta = 1000000,
     .context = 131072,
     .head_dim = 256,
     .tie = true,
     .qk_norm = true,
     .sandwich = true,
     .norm_plus_one = true,
     .embed_scale = true,
     .query_scalar = true,
     .softcaps = true,
     .act_key = "hidden_activation",
     .act = kGelu,
     .window = Defaults::alternating,
     .window_pattern = 6,
     .local_theta = 10000},
};

const Defaults& defaults_of(const Config& config) {
  const std::string type = config.text("model_type");
  for (const Defaults& d : kDefaults)
    if (type == d.model_type) return d;
  throw error(ErrorKind::UnsupportedModel, "model type '{}' is not LlamaStyle", type);
}

using main_part::key;
using main_part::positive;
using main_part::set_default;

void complete_layers(Config& c, const Defaults& d) {
  const int64_t layers = c.integer(key("num_hidden_layers"));
  if (layers < 1 || layers > 10000) throw c.invalid(key("num_hidden_layers"), "{} layers", layers);
  if (!c.is_null(key("sliding_window")) && d.window != Defaults::never)
    set_default(c, "sliding_window", d.window_size);
  if (d.window == Defaults::opt_in) {
    set_default(c, "use_sliding_window", false);
    set_default(c, "max_window_layers", 28);
  }
  if (c.has(key("layer_types"))) return;
  const bool has_window = c.has(key("sliding_window")) && d.window != Defaults::never &&
                          (d.window != Defaults::opt_in || c.boolean(key("use_sliding_window")));
  const int64_t pattern = c.integer_or(key("sliding_window_pattern"), d.window_pattern);
  std::vector<std::string> types;
  for (int64_t i = 0; i < layers; i++) {
    bool slides = has_window;
    if (d.window == Defaults::opt_in) slides = slides && i >= c.integer(key("max_window_layers"));
    if (d.window == Defaults::alternating) slides = slides && pattern > 0 && (i + 1) % pattern != 0;
    types.emplace_back(slides ? "sliding_attention" : "full_attention");
  }
  c.set(key("layer_types"), types);
}

void complete(Config& c) {
  const Defaults& d = defaults_of(c);
  const int64_t heads = c.integer(key("num_attention_heads"));
  const int64_t hidden = c.integer(key("hidden_size"));
  if (heads < 1 || hidden < 1)
    throw c.invalid(key("num_attention_heads"), "{} heads over {} channels", heads, hidden);
  set_default(c, "num_key_value_heads", heads);
  set_default(c, "head_dim", d.head_dim ? d.head_dim : hidden / heads);
  set_default(c, "rms_norm_eps", ConfigValue::from_epsilon(1e-6));
  set_default(c, "max_position_embeddings", d.context);
  set_default(c, "tie_word_embeddings", d.tie);
  set_default(c, "attention_bias", false);
  set_default(c, "mlp_bias", false);
  // Some configs of this form carry the older key with the approximate name; the reference reads the new one.
  if (c.text_or("model_type", "") == "gemma" && c.has(key("hidden_act")) && !c.has(key("hidden_activation")))
    c.set(key("hidden_activation"), kGelu);
  set_default(c, d.act_key, d.act);
  if (d.query_scalar) set_default(c, "query_pre_attn_scalar", 256);
  if (d.softcaps) {
    if (d.attn_softcap > 0 && !c.is_null(key("attn_logit_softcapping")))
      set_default(c, "attn_logit_softcapping", ConfigValue::from_real(d.attn_softcap));
    if (d.final_softcap > 0 && !c.is_null(key("final_logit_softcapping")))
      set_default(c, "final_logit_softcapping", ConfigValue::from_real(d.final_softcap));
  }
  complete_layers(c, d);
  if (d.no_rope_layers && !c.has(key("no_rope_layers"))) {
    const int64_t interval = c.integer_or(key("no_rope_layer_interval"), 4);
    std::vector<int64_t> used;
    for (int64_t i = 0; i < c.integer(key("num_hidden_layers")); i++) used.push_back((i + 1) % interval != 0);
    c.set(key("no_rope_layers"), used);
  }
  if (d.local_theta > 0 && !c.has(key("rope_parameters"))) {
    // Two rotary embeddings: the flat keys describe the full layers, rope_local_base_freq the sliding ones.
    Config full = c;
    complete_rope(full, d.theta);
    const ConfigValue table = *full.find(key("rope_parameters"));
    const ConfigValue* local = c.find(key("rope_local_base_freq"));
    const ConfigValue base = local ? *local : ConfigValue::from_theta(d.local_theta);
    for (const char* old : {"rope_theta", "rope_scaling", "rope_local_base_freq"}) c.erase(key(old));
    c.set(key("rope_parameters.full_attention"), table);
    c.set(key("rope_parameters.sliding_attention.rope_type"), "default");
    c.set(key("rope_parameters.sliding_attention.rope_theta"), base);
  }
  complete_rope(c, d.theta);
}

// The settings of the equations below.
struct Model {
  int64_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn;
  double eps, embed_scale = 1, attn_scale, attn_softcap = 0, final_softcap = 0;
  int64_t norm_offset = 0;
  bool tie, qkv_bias, o_bias, mlp_bias, qk_norm, sandwich;
  Activation act;
  struct Layer {
    int64_t window = 0;
    bool rope = true;
    RopeAttrs rope_attrs;
  };
  std::vector<Layer> layer;
};

Activation activation(const Config& c, const std::string& path) {
  const std::string name = c.text(path);
  if (name == "silu" || name == "swish") return Activation::silu;
  if (name == "gelu") return Activation::gelu;
  if (name == "gelu_pytorch_tanh" || name == "gelu_new") return Activation::gelu_tanh;
  if (name == "relu") return Activation::relu;
  throw c.invalid(path, "unknown activation '{}'", name)
      .advise("supported: silu, gelu, gelu_pytorch_tanh, gelu_new, relu");
}

Model read(const Config& c) {
  const Defaults& d = defaults_of(c);
  Model m;
  m.vocab = positive(c, "vocab_size");
  m.hidden = positive(c, "hidden_size");
  m.layers = positive(c, "num_hidden_layers");
  m.heads = positive(c, "num_attention_heads");
  m.kv_heads = positive(c, "num_key_value_heads");
  m.head_dim = positive(c, "head_dim");
  m.ffn = positive(c, "intermediate_size");
  if (m.heads % m.kv_heads != 0)
    throw c.invalid(key("num_key_value_heads"), "{} heads do not share {} key heads evenly", m.heads,
                    m.kv_heads);
  positive(c, "max_position_embeddings");
  if (const float eps = c.epsilon(key("rms_norm_eps")); !(eps >= 0 && eps < 1))
    throw c.invalid(key("rms_norm_eps"), "{} is out of range", eps);
  m.eps = std::stod(fmt::format("{}", c.epsilon(key("rms_norm_eps"))));  // the decimal that people write
  m.norm_offset = d.norm_plus_one ? 1 : 0;
  m.tie = c.boolean(key("tie_word_embeddings"));
  const bool bias = c.boolean(key("attention_bias"));
  m.qkv_bias = d.qkv_bias || bias;
  m.o_bias = bias;
  m.mlp_bias = c.boolean(key("mlp_bias"));
  m.qk_norm = d.qk_norm;
  m.sandwich = d.sandwich;
  m.act = activation(c, key(d.act_key));
  if (d.embed_scale) m.embed_scale = static_cast<float>(std::sqrt(static_cast<double>(m.hidden)));
  m.attn_scale =
      std::pow(d.query_scalar ? c.real(key("query_pre_attn_scalar")) : static_cast<double>(m.head_dim), -0.5);
  // Whether scores are capped is the class's property: one that names both keys may only use the last.
  if (d.attn_softcap > 0) m.attn_softcap = c.real_or(key("attn_logit_softcapping"), 0);
  if (d.softcaps) m.final_softcap = c.real_or(key("final_logit_softcapping"), 0);
  const std::vector<std::string> types = c.texts(key("layer_types"));
  if (static_cast<int64_t>(types.size()) != m.layers)
    throw c.invalid(key("layer_types"), "{} entries for {} layers", types.size(), m.layers);
  std::vector<int64_t> roped;
  if (d.no_rope_layers) roped = c.integers(key("no_rope_layers"));
  for (int64_t i = 0; i < m.layers; i++) {
    Model::Layer layer;
    const std::string& type = types[static_cast<size_t>(i)];
    if (type == "sliding_attention") {
      layer.window = positive(c, "sliding_window");
      if (c.boolean_or(key("use_bidirectional_attention"), false))
        throw c.invalid(key("use_bidirectional_attention"), "an encoder is not a decoder of this family");
    } else if (type != "full_attention") {
      throw c.invalid(key("layer_types"), "unknown kind of layer '{}'", type)
          .advise("supported: full_attention, sliding_attention");
    }
    layer.rope = !d.no_rope_layers || roped.at(static_cast<size_t>(i)) != 0;
    const std::string nested = key("rope_parameters.") + type;
    layer.rope_attrs = rope_attrs(c, c.has(nested) ? nested : key("rope_parameters"), m.head_dim);
    m.layer.push_back(std::move(layer));
  }
  return m;
}

// One layer after the other, as the papers write them.
class Decoder {
 public:
  Decoder(const Model& model, Program& program) : m(model), b(program, "decode") {}

  void build() {
    const Dim batch = b.dim("B"), time = b.dim("T"), rows_dim = b.dim("R");
    const ValueId tokens = b.input("tokens", {DType::i32, {batch, time}});
    positions = b.input("positions", {DType::i32, {batch, time}});
    lengths = b.input("lengths", {DType::i32, {batch}});
    const ValueId rows = b.input("rows", {DType::i32, {rows_dim}});
    const ValueId table = b.weight("model.embed_tokens.weight", {m.vocab, m.hidden});
    ValueId x = b.op(Op::TokenEmbed, {tokens, table}, TokenEmbedAttrs{m.embed_scale}, "x.0");
    for (int64_t i = 0; i < m.layers; i++) x = layer(i, x);
    x = b.op(Op::Reshape, {x}, ReshapeAttrs{{-1, m.hidden}}, "x.flat");
    x = b.op(Op::Gather, {x, rows}, AxisAttrs{0}, "x.rows");
    x = norm(x, "model.norm.weight", m.hidden, "x.norm");
    const ValueId head = m.tie ? table : b.weight("lm_head.weight", {m.vocab, m.hidden});
    ValueId logits = b.op(Op::Matmul, {x, head}, MatmulAttrs{}, "logits");
    if (m.final_softcap > 0)
      logits = b.op(Op::SoftCap, {logits}, SoftCapAttrs{m.final_softcap}, "logits.capped");
    b.output("logits", logits);
  }

 private:
  ValueId layer(int64_t index, ValueId x) {
    at = "." + std::to_string(index);
    prefix = "model.layers." + std::to_string(index) + ".";
    ValueId branch = attention(index, norm(x, prefix + "input_layernorm.weight", m.hidden, "n1" + at));
    if (m.sandwich)
      branch = norm(branch, prefix + "post_attention_layernorm.weight", m.hidden, "a.norm" + at);
    x = b.op(Op::Add, {x, branch}, NoAttrs{}, "h" + at);
    const char* second = m.sandwich ? "pre_feedforward_layernorm.weight" : "post_attention_layernorm.weight";
    branch = feed_forward(norm(x, prefix + second, m.hidden, "n2" + at));
    if (m.sandwich)
      branch = norm(branch, prefix + "post_feedforward_layernorm.weight", m.hidden, "f.norm" + at);
    return b.op(Op::Add, {x, branch}, NoAttrs{}, "x." + std::to_string(index + 1));
  }

  ValueId attention(int64_t index, ValueId n) {
    const Model::Layer& l = m.layer[static_cast<size_t>(index)];
    ValueId q = heads_of(linear(n, "self_attn.q_proj", m.heads * m.head_dim, m.hidden, m.qkv_bias, "q"),
                         m.heads, "q.heads");
    ValueId k = heads_of(linear(n, "self_attn.k_proj", m.kv_heads * m.head_dim, m.hidden, m.qkv_bias, "k"),
                         m.kv_heads, "k.heads");
    ValueId v = heads_of(linear(n, "self_attn.v_proj", m.kv_heads * m.head_dim, m.hidden, m.qkv_bias, "v"),
                         m.kv_heads, "v.heads");
    if (m.qk_norm) {
      q = norm(q, prefix + "self_attn.q_norm.weight", m.head_dim, "q.norm" + at);
      k = norm(k, prefix + "self_attn.k_norm.weight", m.head_dim, "k.norm" + at);
    }
    if (l.rope) {
      q = b.op(Op::Rope, {q, positions}, l.rope_attrs, "q.rope" + at);
      k = b.op(Op::Rope, {k, positions}, l.rope_attrs, "k.rope" + at);
    }
    SdpaAttrs attrs;
    attrs.scale = m.attn_scale;
    attrs.causal = true;
    attrs.window = l.window;
    attrs.softcap = m.attn_softcap;
    const int state = b.state({.name = "kv" + at,
                               .heads = m.kv_heads,
                               .k_dim = m.head_dim,
                               .v_dim = m.head_dim,
                               .window = l.window,
                               .type = {}});
    ValueId a = b.op(Op::Sdpa, {q, k, v, lengths}, attrs, "a" + at, {state});
    a = b.op(Op::Reshape, {a}, ReshapeAttrs{{0, 0, m.heads * m.head_dim}}, "a.flat" + at);
    return linear(a, "self_attn.o_proj", m.hidden, m.heads * m.head_dim, m.o_bias, "o");
  }

  ValueId feed_forward(ValueId n) {
    const ValueId gate = linear(n, "mlp.gate_proj", m.ffn, m.hidden, m.mlp_bias, "gate");
    const ValueId up = linear(n, "mlp.up_proj", m.ffn, m.hidden, m.mlp_bias, "up");
    ValueId g = gate;
    switch (m.act) {
      case Activation::silu:
        g = b.op(Op::Silu, {gate}, NoAttrs{}, "act" + at);
        break;
      case Activation::gelu:
        g = b.op(Op::Gelu, {gate}, GeluAttrs{GeluForm::erf}, "act" + at);
        break;
      case Activation::gelu_tanh:
        g = b.op(Op::Gelu, {gate}, GeluAttrs{GeluForm::tanh}, "act" + at);
        break;
      default:
        g = b.op(Op::Relu, {gate}, NoAttrs{}, "act" + at);
        break;
    }
    const ValueId product = b.op(Op::Mul, {g, up}, NoAttrs{}, "gated" + at);
    return linear(product, "mlp.down_proj", m.hidden, m.ffn, m.mlp_bias, "down");
  }

  ValueId linear(ValueId x, const char* name, int64_t out, int64_t in, bool bias, const char* result) {
    std::vector<ValueId> operands = {x, b.weight(prefix + name + ".weight", {out, in})};
    if (bias) operands.push_back(b.weight(prefix + name + ".bias", {out}));
    return b.op(Op::Matmul, std::move(operands), MatmulAttrs{}, result + at);
  }

  ValueId heads_of(ValueId x, int64_t count, const char* result) {
    return b.op(Op::Reshape, {x}, ReshapeAttrs{{0, 0, count, m.head_dim}}, result + at);
  }

  ValueId norm(ValueId x, const std::string& weight, int64_t size, const std::string& result) {
    return b.op(Op::RmsNorm, {x, b.weight(weight, {size})}, RmsNormAttrs{m.eps, m.norm_offset}, result);
  }

  const Model& m;
  Builder b;
  ValueId positions = kNone, lengths = kNone;
  std::string at, prefix;
};

Program build(const Config& config) {
  const Model model = read(config);
  Program program;
  Decoder(model, program).build();
  return program;
}

}  // namespace

Family llama_style() {
  static const std::vector<const char*> types = [] {
    std::vector<const char*> t;
    for (const Defaults& d : kDefaults) t.push_back(d.model_type);
    return t;
  }();
  return {"LlamaStyle", types, complete, build};
}

}  // namespace cyb
