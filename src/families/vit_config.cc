// SPDX-License-Identifier: Apache-2.0
#include "families/vit_config.h"

#include <cmath>

#include "families/settings.h"

namespace cyb::vit {
namespace {

constexpr LayerNames kClipLayer = {.layer = "encoder.layers.",
                                   .q = "self_attn.q_proj",
                                   .k = "self_attn.k_proj",
                                   .v = "self_attn.v_proj",
                                   .o = "self_attn.out_proj",
                                   .norm1 = "layer_norm1",
                                   .norm2 = "layer_norm2",
                                   .up = "mlp.fc1",
                                   .down = "mlp.fc2"};
constexpr LayerNames kDinoLayer = {.norm1 = "norm1",
                                   .norm2 = "norm2",
                                   .up = "mlp.fc1",
                                   .down = "mlp.fc2",
                                   .scale1 = "layer_scale1.lambda1",
                                   .scale2 = "layer_scale2.lambda1"};

const Form kForms[] = {
    {.model_type = "vit"},
    {.model_type = "deit", .distillation = "embeddings.distillation_token"},
    {.model_type = "beit",
     .layer = {.scale1 = "lambda_1", .scale2 = "lambda_2"},
     .pooling = Pooling::mean_norm,
     .k_bias = false,
     .relative = true},
    {.model_type = "dinov2", .layer = kDinoLayer, .head = Head::class_patch, .eps = 1e-6},
    {.model_type = "dinov2_with_registers",
     .layer = kDinoLayer,
     .registers = "embeddings.register_tokens",
     .smooth = true,
     .head = Head::class_patch,
     .eps = 1e-6},
    {.model_type = "dinov3_vit",
     .layer = {.layer = "layer.",
               .q = "attention.q_proj",
               .k = "attention.k_proj",
               .v = "attention.v_proj",
               .o = "attention.o_proj",
               .norm1 = "norm1",
               .norm2 = "norm2",
               .up = "mlp.up_proj",
               .down = "mlp.down_proj",
               .scale1 = "layer_scale1.lambda1",
               .scale2 = "layer_scale2.lambda1"},
     .patches = "embeddings.patch_embeddings",
     .registers = "embeddings.register_tokens",
     .positions = nullptr,
     .norm = "norm",
     .head = Head::class_patch,
     .eps = 1e-5,
     .hidden = 384,
     .ffn = 1536,
     .heads = 6,
     .rotary = true},
    {.model_type = "clip_vision_model",
     .layer = kClipLayer,
     .patches = "embeddings.patch_embedding",
     .patch_bias = false,
     .cls = "embeddings.class_embedding",
     .positions = "embeddings.position_embedding.weight",
     .position_rows = true,
     .first_norm = "pre_layrnorm",
     .norm = "post_layernorm",
     .pooling = Pooling::first_norm,
     .head = Head::none,
     .eps = 1e-5,
     .act = "quick_gelu",
     .ffn = 3072,
     .patch = 32},
    {.model_type = "siglip_vision_model",
     .layer = kClipLayer,
     .patches = "embeddings.patch_embedding",
     .cls = nullptr,
     .positions = "embeddings.position_embedding.weight",
     .position_rows = true,
     .norm = "post_layernorm",
     .pooling = Pooling::probe,
     .head = Head::none,
     .eps = 1e-6,
     .act = "gelu_pytorch_tanh",
     .ffn = 3072},
    {.model_type = "siglip2_vision_model",
     .layer = kClipLayer,
     .patches = "embeddings.patch_embedding",
     .patch_rows = true,
     .cls = nullptr,
     .positions = "embeddings.position_embedding.weight",
     .position_rows = true,
     .smooth = true,
     .linear = true,
     .norm = "post_layernorm",
     .pooling = Pooling::probe,
     .head = Head::none,
     .eps = 1e-6,
     .act = "gelu_pytorch_tanh",
     .ffn = 3072},
};

}  // namespace

std::vector<const char*> model_types() {
  std::vector<const char*> out;
  for (const Form& f : kForms) out.push_back(f.model_type);
  return out;
}

const Form& form_of(const std::string& type) {
  for (const Form& f : kForms)
    if (type == f.model_type) return f;
  throw error(ErrorKind::UnsupportedModel, "model type '{}' is no tower of pictures", type);
}

void complete_tower(Config& c, const Form& f, const std::string& part) {
  const auto key = [&](const char* name) { return part + "." + name; };
  set_default(c, key("hidden_size"), f.hidden);
  set_default(c, key("num_hidden_layers"), f.layers);
  set_default(c, key("num_attention_heads"), f.heads);
  set_default(c, key("num_channels"), 3);
  set_default(c, key("patch_size"), f.patch);
  set_default(c, key("hidden_act"), f.act);
  set_default(c, key("layer_norm_eps"), ConfigValue::from_epsilon(f.eps));
  const int64_t hidden = positive_setting(c, key("hidden_size"));
  if (f.patch_rows) {
    set_default(c, key("num_patches"), 256);
  } else {
    set_default(c, key("image_size"), f.image);
  }
  if (!c.has(key("intermediate_size"))) {
    const double ratio = c.real_or(key("mlp_ratio"), 4);
    if (!(ratio > 0 && ratio < 1000)) throw c.invalid(key("mlp_ratio"), "{} is out of range", ratio);
    auto ffn = f.ffn > 0 ? f.ffn : static_cast<int64_t>(static_cast<double>(hidden) * ratio);
    if (c.boolean_or(key("use_swiglu_ffn"), false)) ffn = (ffn * 2 / 3 + 7) / 8 * 8;
    c.set(key("intermediate_size"), ffn);
  }
  set_default(c, key("gated"),
              c.boolean_or(key("use_swiglu_ffn"), false) || c.boolean_or(key("use_gated_mlp"), false));
  if (f.registers) set_default(c, key("num_register_tokens"), f.rotary ? 0 : 4);
  if (f.pooling == Pooling::probe) set_default(c, key("vision_use_head"), true);
  if (f.relative) {
    set_default(c, key("use_absolute_position_embeddings"), false);
    set_default(c, key("use_relative_position_bias"), false);
    set_default(c, key("use_mean_pooling"), true);
    if (c.boolean_or(key("use_shared_relative_position_bias"), false))
      throw c.invalid(key("use_shared_relative_position_bias"),
                      "one relative position bias for all layers is not supported");
    c.set(key("layer_scale"), c.real_or(key("layer_scale_init_value"), 0.1) > 0);
  }
  if (f.rotary) {
    set_default(c, key("rope_theta"), 100);
    for (const auto& [name, value] : {std::pair{"query_bias", true},
                                      {"key_bias", false},
                                      {"value_bias", true},
                                      {"proj_bias", true},
                                      {"mlp_bias", true}})
      set_default(c, key(name), value);
  } else {
    set_default(c, key("qkv_bias"), true);
  }
  keep_settings(c, part,
                {"hidden_size",
                 "num_hidden_layers",
                 "num_attention_heads",
                 "num_channels",
                 "patch_size",
                 "hidden_act",
                 "layer_norm_eps",
                 "num_patches",
                 "image_size",
                 "intermediate_size",
                 "gated",
                 "num_register_tokens",
                 "vision_use_head",
                 "use_absolute_position_embeddings",
                 "use_relative_position_bias",
                 "use_mean_pooling",
                 "layer_scale",
                 "rope_theta",
                 "query_bias",
                 "key_bias",
                 "value_bias",
                 "proj_bias",
                 "mlp_bias",
                 "qkv_bias",
                 "head",
                 "labels",
                 "pooler",
                 "projection",
                 "projection_dim",
                 "problem_type",
                 "text",
                 "vision",
                 "logit_bias",
                 "nulls"});
}

Tower read_tower(const Config& c, const Form& f, const std::string& part, const std::string& prefix) {
  const auto key = [&](const char* name) { return part + "." + name; };
  Tower t;
  t.form = &f;
  Stack& s = t.stack;
  s.names = f.layer;
  s.prefix = prefix;
  s.hidden = positive_setting(c, key("hidden_size"));
  s.layers = positive_setting(c, key("num_hidden_layers"));
  s.heads = positive_setting(c, key("num_attention_heads"));
  if (s.layers > 10000 || s.hidden % s.heads != 0)
    throw c.invalid(key("num_hidden_layers"), "{} layers, {} heads over {} channels", s.layers, s.heads,
                    s.hidden);
  s.ffn = positive_setting(c, key("intermediate_size"));
  s.eps = epsilon_setting(c, key("layer_norm_eps"));
  s.act = activation_setting(c, key("hidden_act"));
  s.q_bias = s.k_bias = s.v_bias = c.boolean_or(key("qkv_bias"), true);
  s.k_bias = s.k_bias && f.k_bias;
  if (f.rotary) {
    s.q_bias = c.boolean(key("query_bias")), s.k_bias = c.boolean(key("key_bias"));
    s.v_bias = c.boolean(key("value_bias")), s.o_bias = c.boolean(key("proj_bias"));
    s.mlp_bias = c.boolean(key("mlp_bias"));
    t.theta = c.real(key("rope_theta"));
    if (s.hidden / s.heads % 4 != 0 || !(t.theta > 0))
      throw c.invalid(key("hidden_size"), "heads of {} channels cannot be turned along two axes",
                      s.hidden / s.heads);
  }
  if (c.boolean(key("gated"))) {
    if (f.rotary) {
      s.names.gate = "mlp.gate_proj";
    } else {
      s.names.gate_up = "mlp.weights_in";
      s.names.down = "mlp.weights_out";
      s.act = ir::Activation::silu;
    }
  }
  t.channels = positive_setting(c, key("num_channels"));
  const auto [patch, patch_width] = size_setting(c, key("patch_size"));
  if (patch != patch_width) throw c.invalid(key("patch_size"), "patches of {} × {}", patch, patch_width);
  t.patch = patch;
  if (f.patch_rows) {
    const int64_t count = positive_setting(c, key("num_patches"));
    t.rows = t.columns = std::llround(std::sqrt(static_cast<double>(count)));
    if (t.rows * t.columns != count) throw c.invalid(key("num_patches"), "{} is no square", count);
    t.image_height = t.image_width = t.rows * patch;
  } else {
    std::tie(t.image_height, t.image_width) = size_setting(c, key("image_size"));
    t.rows = t.image_height / patch, t.columns = t.image_width / patch;
    if (t.rows < 1 || t.columns < 1)
      throw c.invalid(key("patch_size"), "patches of {} in pictures of {} × {}", patch, t.image_height,
                      t.image_width);
  }
  if (f.registers) {
    t.registers = c.integer(key("num_register_tokens"));
    if (t.registers < 0 || t.registers > 4096)
      throw c.invalid(key("num_register_tokens"), "{} is out of range", t.registers);
  }
  t.position_table = f.positions != nullptr;
  if (f.relative) {
    t.position_table = c.boolean(key("use_absolute_position_embeddings"));
    t.relative = c.boolean(key("use_relative_position_bias"));
    t.mean = c.boolean(key("use_mean_pooling"));
    if (!c.boolean(key("layer_scale"))) s.names.scale1 = s.names.scale2 = nullptr;
  }
  t.pooler = c.boolean_or(key("pooler"), false);
  if (f.pooling == Pooling::probe) t.pools = c.boolean(key("vision_use_head"));
  return t;
}

}  // namespace cyb::vit
