// SPDX-License-Identifier: Apache-2.0
// Two towers; their names, the vector of a text and the scale of similarities are data.
#include "families/clip_style.h"

#include "families/settings.h"
#include "families/vit_tower.h"
#include "ir/ops/attention.h"

namespace cyb {
namespace {

using namespace ir;

struct Pair {
  const char* model_type;
  const char* vision;  // its form; null: a tower of texts alone
  bool causal;  // texts are read forwards, and their end has their vector; else the last position has it
  double eps;
  const char* act;
  int64_t vocab, hidden, ffn, layers, heads, positions;
};
constexpr Pair kPairs[] = {
    {"clip", "clip_vision_model", true, 1e-5, "quick_gelu", 49408, 512, 2048, 12, 8, 77},
    {"clip_text_model", nullptr, true, 1e-5, "quick_gelu", 49408, 512, 2048, 12, 8, 77},
    {"siglip", "siglip_vision_model", false, 1e-6, "gelu_pytorch_tanh", 32000, 768, 3072, 12, 12, 64},
    {"siglip_text_model", nullptr, false, 1e-6, "gelu_pytorch_tanh", 32000, 768, 3072, 12, 12, 64},
    {"siglip2", "siglip2_vision_model", false, 1e-6, "gelu_pytorch_tanh", 32000, 768, 3072, 12, 12, 64},
};

const Pair& pair_of(const Config& c) {
  const std::string type = c.text("model_type");
  for (const Pair& p : kPairs)
    if (type == p.model_type) return p;
  throw error(ErrorKind::UnsupportedModel, "model type '{}' is not ClipStyle", type);
}

std::string text_part(const Pair& p) { return p.vision ? "architecture.text" : "architecture"; }

void complete_text(Config& c, const Pair& p, const std::string& part) {
  const auto key = [&](const char* name) { return part + "." + name; };
  for (const auto& [name, value] : {std::pair{"vocab_size", p.vocab},
                                    {"hidden_size", p.hidden},
                                    {"intermediate_size", p.ffn},
                                    {"num_hidden_layers", p.layers},
                                    {"num_attention_heads", p.heads},
                                    {"max_position_embeddings", p.positions}})
    set_default(c, key(name), value);
  set_default(c, key("hidden_act"), p.act);
  set_default(c, key("layer_norm_eps"), ConfigValue::from_epsilon(p.eps));
  if (p.causal) {
    // Towers alone have the token's id beside their architecture.
    const int64_t eos = p.vision ? 49407 : c.integer_or("tokenizer.eos_token_id", 49407);
    set_default(c, key("eos_token_id"), eos);
  } else {
    set_default(c, key("projection_size"), positive_setting(c, key("hidden_size")));
  }
  keep_settings(c, part,
                {"vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                 "max_position_embeddings", "hidden_act", "layer_norm_eps", "eos_token_id", "projection_size",
                 "projection", "projection_dim", "text", "vision", "logit_bias"});
  c.set("tokenizer.max_tokens", positive_setting(c, key("max_position_embeddings")));
}

void complete(Config& c) {
  const Pair& p = pair_of(c);
  const std::string all = "architecture";
  if (!p.vision) {
    if (c.boolean_or(all + ".projection", false)) set_default(c, all + ".projection_dim", 512);
    complete_text(c, p, all);
    c.set("inputs", std::vector<std::string>{"text"});
    c.set("task", "embed");
    return;
  }
  // Older checkpoints have the settings of a part twice; what stands in *_config_dict is meant.
  for (const char* part : {"text", "vision"}) {
    const std::string name = std::string("architecture.") + part;
    if (c.has(name)) continue;
    c.set(name, ConfigTable());
    for (const char* suffix : {"_config", "_config_dict"}) {
      const ConfigValue* found = c.find(name + suffix);
      if (!found || !found->is_table()) continue;
      const ConfigValue copy = *found;
      for (const ConfigEntry& e : *copy.table()) c.set(name + "." + e.key, e.value);
    }
  }
  if (p.causal) set_default(c, all + ".projection_dim", 512);
  complete_text(c, p, all + ".text");
  vit::complete_tower(c, vit::form_of(p.vision), all + ".vision");
  c.set(all + ".logit_bias", !p.causal);
  keep_settings(c, all, {"text", "vision", "projection_dim", "logit_bias"});
  c.set("inputs", std::vector<std::string>{"picture", "text"});
  c.set("task", "embed");
}

struct Text {
  vit::Stack stack;
  int64_t vocab, positions, eos = 0, projection = 0;
};

Text read_text(const Config& c, const Pair& p) {
  const std::string part = text_part(p);
  const auto key = [&](const char* name) { return part + "." + name; };
  Text t;
  vit::Stack& s = t.stack;
  s.names = vit::form_of("clip_vision_model").layer;
  s.prefix = "text_model.";
  s.hidden = positive_setting(c, key("hidden_size"));
  s.layers = positive_setting(c, key("num_hidden_layers"));
  s.heads = positive_setting(c, key("num_attention_heads"));
  if (s.layers > 10000 || s.hidden % s.heads != 0)
    throw c.invalid(key("num_hidden_layers"), "{} layers, {} heads over {} channels", s.layers, s.heads,
                    s.hidden);
  s.ffn = positive_setting(c, key("intermediate_size"));
  s.eps = epsilon_setting(c, key("layer_norm_eps"));
  s.act = activation_setting(c, key("hidden_act"));
  s.causal = p.causal;
  t.vocab = positive_setting(c, key("vocab_size"));
  t.positions = positive_setting(c, key("max_position_embeddings"));
  if (p.causal)
    t.eos = c.integer(key("eos_token_id"));
  else
    t.projection = positive_setting(c, key("projection_size"));
  return t;
}

class TextTower {
 public:
  TextTower(Builder& b, const Text& text, const Pair& pair) : n_(b, text.stack.prefix), t_(text), p_(pair) {}

  ValueId hidden() {
    const int64_t d = t_.stack.hidden;
    tokens_ = n_.b.input("tokens", {DType::i32, {n_.b.dim("B"), n_.b.dim("T")}});
    ValueId x =
        n_.b.op(Op::TokenEmbed, {tokens_, n_.weight("embeddings.token_embedding.weight", {t_.vocab, d})},
                TokenEmbedAttrs{}, "x.words");
    const ValueId end = n_.slice(n_.shape_of(tokens_), 0, 1, 2, "time");
    const ValueId places = n_.b.op(Op::Slice,
                                   {n_.weight("embeddings.position_embedding.weight", {t_.positions, d}),
                                    n_.integers({0}, "places.begin"), end, n_.integers({0}, "places.axis")},
                                   NoAttrs{}, "places");
    x = n_.add(x, places, "x.0");
    x = run_stack(n_.b, t_.stack, x);
    return n_.norm(x, "final_layer_norm", d, t_.stack.eps, "x.norm");
  }

  // f32[B, D]
  ValueId pooled(ValueId x) {
    if (!p_.causal) {
      const ValueId last = n_.at(x, 1, -1, "x.last");
      return n_.linear(last, "head", t_.projection, t_.stack.hidden, true, "pooled");
    }
    // Checkpoints that say 2 mean the largest id; both find the first of several.
    ValueId ids = tokens_;
    if (t_.eos != 2) {
      const ValueId eos =
          n_.b.graph().add_constant("eos", Tensor::i32(Shape{}, {static_cast<int32_t>(t_.eos)}));
      ids = n_.b.op(Op::Equal, {tokens_, eos}, NoAttrs{}, "is_eos");
      ids = n_.b.op(Op::Cast, {ids}, CastAttrs{DType::i32}, "is_eos.one");
    }
    const ValueId at = n_.b.op(Op::Argmax, {ids}, ArgAttrs{1, true, false}, "end");
    return n_.b.op(Op::GatherNd, {x, at}, GatherNdAttrs{1}, "pooled");
  }

 private:
  vit::Nodes n_;
  const Text& t_;
  const Pair& p_;
  ValueId tokens_ = kNone;
};

ValueId embedding(Builder& b, ValueId pooled, const char* name, int64_t width, int64_t in) {
  vit::Nodes n(b, "");
  const ValueId y = width > 0 ? n.linear(pooled, name, width, in, false, "projected") : pooled;
  return n.normalized(y, "embedding");
}

void add_text(Program& program, const Config& c, const Pair& p, const char* graph, int64_t width) {
  const Text text = read_text(c, p);
  Builder b(program, graph);
  TextTower t(b, text, p);
  const ValueId x = t.hidden(), pooled = t.pooled(x);
  b.output("hidden", x);
  b.output("pooled", pooled);
  if (p.vision || width > 0)
    b.output("embedding", embedding(b, pooled, "text_projection", width, text.stack.hidden));
}

// Logits of each picture for each text, from their embeddings.
void add_similarity(Program& program, int64_t width, bool biased) {
  Builder b(program, "similarity");
  const ValueId pictures = b.input("pictures", {DType::f32, {b.dim("N"), width}});
  const ValueId texts = b.input("texts", {DType::f32, {b.dim("M"), width}});
  vit::Nodes n(b, "");
  // Comparing is symmetric; the reference multiplies texts by pictures.
  ValueId y = b.op(Op::Matmul, {pictures, texts}, MatmulAttrs{}, "cosines");
  const Dims one = biased ? Dims{1} : Dims{};
  y = n.mul(y, b.op(Op::Exp, {b.weight("logit_scale", one)}, NoAttrs{}, "scale"), "scaled");
  if (biased) y = n.add(y, b.weight("logit_bias", one), "biased");
  b.output("logits", y);
}

Program build(const Config& c) {
  const Pair& p = pair_of(c);
  Program program;
  if (!p.vision) {
    const bool projects = c.boolean_or("architecture.projection", false);
    add_text(program, c, p, "encode", projects ? positive_setting(c, "architecture.projection_dim") : 0);
    return program;
  }
  const int64_t projected = p.causal ? positive_setting(c, "architecture.projection_dim") : 0;
  const vit::Tower tower = vit::read_tower(c, vit::form_of(p.vision), "architecture.vision", "vision_model.");
  const int64_t width = projected > 0 ? projected : tower.stack.hidden;
  if (!p.causal && positive_setting(c, "architecture.text.projection_size") != width)
    throw c.invalid("architecture.text.projection_size", "vectors of texts have {} values, of pictures {}",
                    c.integer("architecture.text.projection_size"), width);
  if (!tower.pools)
    throw c.invalid("architecture.vision.vision_use_head", "the model has no vector of a picture");
  {
    Builder b(program, "vision.encode");
    vit::VisionTower t(b, tower);
    t.read_pixels();
    const ValueId x = t.hidden(), pooled = t.pooled(x);
    b.output("hidden", x);
    b.output("pooled", pooled);
    b.output("embedding", embedding(b, pooled, "visual_projection", projected, tower.stack.hidden));
  }
  add_text(program, c, p, "text.encode", projected);
  add_similarity(program, width, c.boolean("architecture.logit_bias"));
  return program;
}

}  // namespace

Family clip_style() {
  static const std::vector<const char*> types = [] {
    std::vector<const char*> out;
    for (const Pair& p : kPairs) out.push_back(p.model_type);
    return out;
  }();
  return {"ClipStyle", types, complete, build};
}

}  // namespace cyb
