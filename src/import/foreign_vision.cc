// SPDX-License-Identifier: Apache-2.0
#include "import/foreign_vision.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "import/json_file.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kOpenClip = "open_clip_config.json";

struct Rename {
  const char *from, *to;
};
// Beginnings of names, then parts inside of a layer.
constexpr Rename kClipBegins[] = {
    {"visual.conv1.weight", "vision_model.embeddings.patch_embedding.weight"},
    {"visual.class_embedding", "vision_model.embeddings.class_embedding"},
    {"visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"},
    {"visual.ln_pre.", "vision_model.pre_layrnorm."},
    {"visual.ln_post.", "vision_model.post_layernorm."},
    {"visual.transformer.resblocks.", "vision_model.encoder.layers."},
    {"visual.proj", "visual_projection.weight"},
    {"token_embedding.", "text_model.embeddings.token_embedding."},
    {"positional_embedding", "text_model.embeddings.position_embedding.weight"},
    {"transformer.resblocks.", "text_model.encoder.layers."},
    {"ln_final.", "text_model.final_layer_norm."},
    {"text_projection", "text_projection.weight"},
};
constexpr Rename kClipParts[] = {{".ln_1.", ".layer_norm1."},
                                 {".ln_2.", ".layer_norm2."},
                                 {".mlp.c_fc.", ".mlp.fc1."},
                                 {".mlp.c_proj.", ".mlp.fc2."},
                                 {".attn.out_proj.", ".self_attn.out_proj."}};
constexpr Rename kTimmBegins[] = {
    {"cls_token", "embeddings.cls_token"},
    {"dist_token", "embeddings.distillation_token"},
    {"pos_embed", "embeddings.position_embeddings"},
    {"patch_embed.proj.", "embeddings.patch_embeddings.projection."},
    {"blocks.", "encoder.layer."},
    {"norm.", "layernorm."},
    {"head_dist.", "distillation_classifier."},
    {"head.", "classifier."},
};
constexpr Rename kTimmParts[] = {{".norm1.", ".layernorm_before."},
                                 {".norm2.", ".layernorm_after."},
                                 {".attn.proj.", ".attention.output.dense."},
                                 {".mlp.fc1.", ".intermediate.dense."},
                                 {".mlp.fc2.", ".output.dense."}};

void rename(std::string* name, std::span<const Rename> begins, std::span<const Rename> parts) {
  for (const Rename& r : begins)
    if (name->starts_with(r.from)) {
      name->replace(0, std::strlen(r.from), r.to);
      break;
    }
  for (const Rename& r : parts)
    if (const size_t at = name->find(r.from); at != std::string::npos) {
      name->replace(at, std::strlen(r.from), r.to);
      return;
    }
}

// One tensor of three times the rows → three of them.
void cut(const SafeTensor& t, const std::string& end, const char* const (&ends)[3],
         std::vector<SafeTensor>* out) {
  if (t.shape.empty() || t.shape[0] % 3 != 0 || t.size % 3 != 0)
    throw error(ErrorKind::ShapeMismatch, "'{}' is not three matrices in one", t.name);
  const std::string begin = t.name.substr(0, t.name.size() - end.size());
  for (uint64_t i = 0; i < 3; i++) {
    SafeTensor part = t;
    part.name = begin + ends[i];
    part.shape[0] /= 3;
    part.size /= 3;
    part.data += i * part.size;
    part.offset += i * part.size;
    out->push_back(std::move(part));
  }
}

void transpose(SafeTensor* t, std::deque<std::vector<uint8_t>>* buffers) {
  if (t->shape.size() != 2)
    throw error(ErrorKind::ShapeMismatch, "'{}' has {} axes instead of 2", t->name, t->shape.size());
  const auto rows = static_cast<uint64_t>(t->shape[0]), columns = static_cast<uint64_t>(t->shape[1]);
  if (rows * columns == 0 || t->size % (rows * columns) != 0) return;
  const uint64_t each = t->size / (rows * columns);
  std::vector<uint8_t>& to = buffers->emplace_back(t->size);
  for (uint64_t r = 0; r < rows; r++)
    for (uint64_t c = 0; c < columns; c++)
      std::memcpy(to.data() + (c * rows + r) * each, t->data + (r * columns + c) * each, each);
  t->data = to.data();
  t->file = nullptr;
  t->offset = 0;
  std::swap(t->shape[0], t->shape[1]);
}

const SafeTensor* find(const std::vector<SafeTensor>& tensors, const std::string& name) {
  for (const SafeTensor& t : tensors)
    if (t.name == name) return &t;
  return nullptr;
}

int64_t number(const ordered_json& j, const char* key, int64_t missing) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return missing;
  if (!it->is_number_integer() || it->get<int64_t>() < 1 || it->get<int64_t>() > int64_t{1} << 31)
    throw error(ErrorKind::InvalidConfig, "'{}' is {}", key, it->dump());
  return it->get<int64_t>();
}

// Heads are in no tensor: of 64 channels each but for the largest models.
int64_t usual_heads(int64_t hidden) {
  if (hidden == 1280 || hidden == 1408 || hidden == 1664) return 16;
  return hidden % 64 == 0 ? hidden / 64 : 1;
}

void complete_timm(std::vector<SafeTensor>& tensors, Config* config) {
  const std::string part = "architecture.";
  const SafeTensor* cls = find(tensors, "embeddings.cls_token");
  const SafeTensor* patch = find(tensors, "embeddings.patch_embeddings.projection.weight");
  const SafeTensor* up = find(tensors, "encoder.layer.0.intermediate.dense.weight");
  if (!cls || cls->shape.size() != 3 || !patch || patch->shape.size() != 4 || !up || up->shape.size() != 2)
    throw error(ErrorKind::UnsupportedModel, "timm's '{}' is not a vision transformer of a known form",
                config->text_or(part + "timm", ""))
        .advise("supported of timm: ViT and DeiT with a class token");
  int64_t layers = 0;
  while (layers < 10000 && find(tensors, fmt::format("encoder.layer.{}.layernorm_before.weight", layers)))
    layers++;
  const int64_t hidden = cls->shape[2];
  const bool distilled = find(tensors, "embeddings.distillation_token") != nullptr;
  config->set("model_type", distilled ? "deit" : "vit");
  config->set(part + "hidden_size", hidden);
  config->set(part + "num_hidden_layers", layers);
  config->set(part + "intermediate_size", up->shape[0]);
  config->set(part + "num_channels", patch->shape[1]);
  config->set(part + "patch_size", patch->shape[2]);
  if (!config->has(part + "num_attention_heads"))
    config->set(part + "num_attention_heads", usual_heads(hidden));
  config->set(part + "layer_norm_eps", ConfigValue::from_epsilon(1e-6));
  config->set(part + "qkv_bias", find(tensors, "encoder.layer.0.attention.attention.query.bias") != nullptr);
  if (const SafeTensor* head = find(tensors, "classifier.weight"); head && !head->shape.empty()) {
    config->set(part + "head",
                find(tensors, "distillation_classifier.weight") ? "classification_pair" : "classification");
    config->set(part + "num_labels", head->shape[0]);
  }
  if (find(tensors, "distillation_classifier.weight"))
    for (SafeTensor& t : tensors)
      if (t.name.starts_with("classifier.")) t.name.insert(0, "cls_");
  config->erase(part + "timm");
}

}  // namespace

bool is_open_clip_folder(const std::string& folder) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(folder) / kOpenClip, ignored) &&
         !fs::is_regular_file(fs::path(folder) / "config.json", ignored);
}

ordered_json open_clip_config(const std::string& folder) {
  const std::string path = (fs::path(folder) / kOpenClip).string();
  const ordered_json file = read_json_object(path);
  const auto table = [&](const ordered_json& j, const char* key) -> const ordered_json& {
    if (!j.contains(key) || !j[key].is_object())
      throw error(ErrorKind::InvalidConfig, "{}: no table '{}'", path, key);
    return j[key];
  };
  const ordered_json &model = table(file, "model_cfg"), &vision = table(model, "vision_cfg"),
                     &text = table(model, "text_cfg");
  for (const char* key : {"timm_model_name", "hf_model_name", "attentional_pool", "pool_type"})
    for (const ordered_json* tower : {&vision, &text})
      if (tower->contains(key) && !(*tower)[key].is_null() && (*tower)[key] != false)
        throw error(ErrorKind::UnsupportedModel, "{}: a tower with '{}'", path, key)
            .advise("supported of OpenCLIP: ViT beside the transformer for texts of CLIP");
  if (vision.contains("layers") && vision["layers"].is_array())
    throw error(ErrorKind::UnsupportedModel, "{}: a ResNet as tower of pictures", path)
        .advise("supported of OpenCLIP: ViT beside the transformer for texts of CLIP");
  const bool quick = model.contains("quick_gelu") && model["quick_gelu"] == true;
  const char* act = quick ? "quick_gelu" : "gelu";
  const int64_t width = number(vision, "width", 768), text_width = number(text, "width", 512);
  double ratio = 4;
  if (vision.contains("mlp_ratio") && vision["mlp_ratio"].is_number())
    ratio = vision["mlp_ratio"].get<double>();
  if (!(ratio > 0 && ratio < 1000)) throw error(ErrorKind::InvalidConfig, "{}: mlp_ratio is {}", path, ratio);
  return {{"model_type", "clip"},
          {"architectures", {"CLIPModel"}},
          {"projection_dim", number(model, "embed_dim", 512)},
          {"text_config",
           {{"hidden_size", text_width},
            {"intermediate_size", 4 * text_width},
            {"num_hidden_layers", number(text, "layers", 12)},
            {"num_attention_heads", number(text, "heads", 8)},
            {"vocab_size", number(text, "vocab_size", 49408)},
            {"max_position_embeddings", number(text, "context_length", 77)},
            {"hidden_act", act},
            {"eos_token_id", 2}}},  // the largest id ends a text
          {"vision_config",
           {{"hidden_size", width},
            {"intermediate_size", static_cast<int64_t>(static_cast<double>(width) * ratio)},
            {"num_hidden_layers", number(vision, "layers", 12)},
            {"num_attention_heads", std::max<int64_t>(1, width / number(vision, "head_width", 64))},
            {"image_size", vision.contains("image_size") ? vision["image_size"] : ordered_json(224)},
            {"patch_size", number(vision, "patch_size", 32)},
            {"hidden_act", act}}}};
}

bool adapt_timm_config(ordered_json* config) {
  const ordered_json& c = *config;
  if (c.contains("model_type") || !c.contains("architecture") || !c["architecture"].is_string() ||
      !(c.contains("pretrained_cfg") || c.contains("num_classes")))
    return false;
  ordered_json out = {{"model_type", "timm"}, {"timm", c["architecture"]}};
  const auto sub = [&](const char* key) -> ordered_json {
    return c.contains(key) && c[key].is_object() ? c[key] : ordered_json::object();
  };
  const ordered_json trained = sub("pretrained_cfg"), args = sub("model_args");
  for (const ordered_json* from : {&trained, &c})
    if (from->contains("input_size") && (*from)["input_size"].is_array() && (*from)["input_size"].size() == 3)
      out["image_size"] = {(*from)["input_size"][1], (*from)["input_size"][2]};
  if (args.contains("img_size")) out["image_size"] = args["img_size"];
  if (args.contains("num_heads")) out["num_attention_heads"] = args["num_heads"];
  for (const ordered_json* from : {&trained, &c})
    if (from->contains("label_names") && (*from)["label_names"].is_array())
      out["labels"] = (*from)["label_names"];
  *config = std::move(out);
  return true;
}

void adapt_foreign_tensors(std::vector<SafeTensor>* tensors, Config* config,
                           std::deque<std::vector<uint8_t>>* buffers) {
  const std::string type = config->text("model_type");
  const bool timm = type == "timm";
  if (!timm && !(type == "clip" && find(*tensors, "visual.conv1.weight"))) return;
  std::vector<SafeTensor> out;
  for (SafeTensor& t : *tensors) {
    if (timm) {
      rename(&t.name, kTimmBegins, kTimmParts);
    } else {
      const bool turned = t.name == "visual.proj" || t.name == "text_projection";
      rename(&t.name, kClipBegins, kClipParts);
      if (turned) transpose(&t, buffers);
    }
    if (t.name.ends_with(".attn.qkv.weight"))
      cut(t, ".attn.qkv.weight",
          {".attention.attention.query.weight", ".attention.attention.key.weight",
           ".attention.attention.value.weight"},
          &out);
    else if (t.name.ends_with(".attn.qkv.bias"))
      cut(t, ".attn.qkv.bias",
          {".attention.attention.query.bias", ".attention.attention.key.bias",
           ".attention.attention.value.bias"},
          &out);
    else if (t.name.ends_with(".attn.in_proj_weight"))
      cut(t, ".attn.in_proj_weight",
          {".self_attn.q_proj.weight", ".self_attn.k_proj.weight", ".self_attn.v_proj.weight"}, &out);
    else if (t.name.ends_with(".attn.in_proj_bias"))
      cut(t, ".attn.in_proj_bias",
          {".self_attn.q_proj.bias", ".self_attn.k_proj.bias", ".self_attn.v_proj.bias"}, &out);
    else if (t.name != "attn_mask")  // a buffer of OpenCLIP
      out.push_back(std::move(t));
  }
  *tensors = std::move(out);
  if (timm) complete_timm(*tensors, config);
}

}  // namespace cyb
