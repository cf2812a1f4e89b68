// SPDX-License-Identifier: Apache-2.0
#include "import/vision_names.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

struct Rules {
  const char* model_type;
  const char* prefix;  // of the base model's tensors; null: two towers, with their own prefixes
  bool classes;        // there are heads for classes
  bool pooler;         // … and a layer of its own for one vector, where it was trained
};
constexpr Rules kRules[] = {
    {"vit", "vit.", true, true},
    {"deit", "deit.", true, true},
    {"beit", "beit.", true, false},
    {"dinov2", "dinov2.", true, false},
    {"dinov2_with_registers", "dinov2_with_registers.", true, false},
    {"dinov3_vit", "dinov3_vit.", true, false},
    {"swin", "swin.", true, false},
    {"swinv2", "swinv2.", true, false},
    {"convnext", "convnext.", true, false},
    {"convnextv2", "convnextv2.", true, false},
    {"clip", nullptr, false, false},
    {"clip_text_model", nullptr, false, false},
    {"clip_vision_model", nullptr, false, false},
    {"siglip", nullptr, false, false},
    {"siglip_text_model", nullptr, false, false},
    {"siglip_vision_model", nullptr, false, false},
    {"siglip2", nullptr, false, false},
    {"siglip2_vision_model", nullptr, false, false},
};

const Rules* rules_of(const std::string& model_type) {
  for (const Rules& r : kRules)
    if (model_type == r.model_type) return &r;
  return nullptr;
}

bool is_classifier(const std::string& name) {
  for (const char* head : {"classifier.", "cls_classifier.", "distillation_classifier."})
    if (name.starts_with(head)) return true;
  return false;
}

// Why the reference does not read the tensor; null: it does.
const char* unread(const std::string& name, const Rules& rules, const std::string& head, bool mean_pooled) {
  if (name.ends_with("position_ids") || name.ends_with("relative_position_index") ||
      name.ends_with("relative_coords_table"))
    return "a buffer that counts";
  if (name == "embeddings.mask_token") return "for training with masked patches";
  if (is_classifier(name) && head == "none") return "the head for classes";
  if (name.starts_with("pooler.") && !rules.pooler && !mean_pooled)
    return "a pooler that the model does not use";
  // A tower alone, cut out of a pair.
  const std::string type = rules.model_type;
  if (type.ends_with("_vision_model") && (name.starts_with("text_") || name.starts_with("logit_")))
    return "of the tower of texts";
  if (type.ends_with("_text_model") &&
      (name.starts_with("vision_") || name.starts_with("visual_") || name.starts_with("logit_")))
    return "of the tower of pictures";
  return nullptr;
}

// A tower alone has the names that it has in a pair; newer files leave the first part out.
const char* tower_prefix(std::string_view model_type) {
  if (model_type.ends_with("_text_model")) return "text_model.";
  return model_type.ends_with("_vision_model") ? "vision_model." : nullptr;
}
bool is_bare(const std::string& name) {
  for (const char* part :
       {"embeddings.", "encoder.", "final_layer_norm.", "pre_layrnorm.", "post_layernorm.", "head."})
    if (name.starts_with(part)) return true;
  return false;
}

}  // namespace

bool reads_texts(const Config& config) {
  const std::string type = config.text("model_type");
  const Rules* rules = rules_of(type);
  if (!rules) return type != "timm";
  return !rules->prefix && !std::string_view(rules->model_type).ends_with("_vision_model");
}

void read_lower_case(const Config& config, TokenizerSpec* tokenizer) {
  auto& steps = tokenizer->normalizer;
  if (!config.text("model_type").starts_with("siglip") ||
      std::any_of(steps.begin(), steps.end(), [](const TokenizerStep& s) { return s.type == "Lowercase"; }))
    return;
  steps.insert(steps.begin(), TokenizerStep{"Lowercase", {}});
}

void read_vision_head(Config* config, const std::string& architecture) {
  const Rules* rules = rules_of(config->text("model_type"));
  if (!rules) return;
  if (architecture.ends_with("WithProjection")) {
    config->set("architecture.projection", true);
  } else if (architecture.ends_with("ForImageClassificationWithTeacher")) {
    config->set("architecture.head", "classification_pair");
  } else if (architecture.ends_with("ForImageClassification") && rules->classes) {
    config->set("architecture.head", "classification");
  } else if (!architecture.empty() && !architecture.ends_with("Model")) {
    throw error(ErrorKind::UnsupportedModel, "the head of '{}' is not supported", architecture)
        .advise("supported: base models, ForImageClassification and those with a projection");
  }
}

void adapt_vision_tensors(std::vector<SafeTensor>* tensors, Config* config,
                          std::vector<std::pair<std::string, std::string>>* ignored) {
  const Rules* rules = rules_of(config->text("model_type"));
  if (!rules) return;
  const std::string head = config->text_or("architecture.head", "none");
  const bool mean_pooled = std::string_view(rules->model_type) == "beit" &&
                           config->boolean_or("architecture.use_mean_pooling", true);
  const char* tower = tower_prefix(rules->model_type);
  std::vector<SafeTensor> kept;
  for (SafeTensor& t : *tensors) {
    if (tower && is_bare(t.name)) t.name.insert(0, tower);
    if (rules->prefix && t.name.starts_with(rules->prefix)) t.name.erase(0, std::strlen(rules->prefix));
    if (const char* why = unread(t.name, *rules, head, mean_pooled))
      ignored->emplace_back(t.name, why);
    else
      kept.push_back(std::move(t));
  }
  *tensors = std::move(kept);
  if (rules->pooler)
    config->set("architecture.pooler", std::any_of(tensors->begin(), tensors->end(), [](const SafeTensor& t) {
                  return t.name == "pooler.dense.weight";
                }));
}

}  // namespace cyb
