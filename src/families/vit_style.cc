// SPDX-License-Identifier: Apache-2.0
// A picture's tokens, one vector of them, classes. What differs between models is data (vit_config.h).
#include "families/vit_style.h"

#include "families/settings.h"
#include "families/vit_tower.h"

namespace cyb {
namespace {

using namespace ir;
using vit::Form;
using vit::Head;

const std::string kPart = "architecture";

Head head_of(const Config& c, const Form& form) {
  const std::string head = c.text(kPart + ".head");
  if (head == "none") return Head::none;
  if (head == "classification" && form.head != Head::none) return form.head;
  if (head == "classification_pair" && form.distillation) return Head::class_pair;
  throw c.invalid(kPart + ".head", "unknown head '{}'", head)
      .advise(
          "supported: none, classification, and classification_pair for models with a distillation token");
}

void complete(Config& c) {
  const Form& form = vit::form_of(c.text("model_type"));
  set_default(c, kPart + ".head", "none");
  const bool classes = c.text(kPart + ".head") != "none";
  if (classes) complete_labels(c);
  if (c.boolean_or(kPart + ".projection", false)) set_default(c, kPart + ".projection_dim", 512);
  vit::complete_tower(c, form, kPart);
  c.set("inputs", std::vector<std::string>{"picture"});
  c.set("task", classes ? "classify" : "embed");
}

// Two-tower models name their own tensors `vision_model.…`, alone too.
std::string prefix_of(const Form& form) {
  return std::string_view(form.model_type).ends_with("_vision_model") ? "vision_model." : "";
}

Program build(const Config& c) {
  const Form& form = vit::form_of(c.text("model_type"));
  const vit::Tower tower = vit::read_tower(c, form, kPart, prefix_of(form));
  const Head head = head_of(c, form);
  Program program;
  {
    Builder b(program, "encode");
    vit::VisionTower t(b, tower);
    t.read_pixels();
    const ValueId x = t.hidden();
    b.output("hidden", x);
    if (tower.pools) {
      const ValueId pooled = t.pooled(x);
      b.output("pooled", pooled);
      if (c.boolean_or(kPart + ".projection", false)) {
        vit::Nodes n(b, "");
        const int64_t width = positive_setting(c, kPart + ".projection_dim");
        const ValueId y =
            n.linear(pooled, "visual_projection", width, tower.stack.hidden, false, "projected");
        b.output("embedding", n.normalized(y, "embedding"));
      }
    }
  }
  if (head != Head::none) {
    Builder b(program, "classify");
    vit::VisionTower t(b, tower);
    t.read_pixels();
    const auto labels = static_cast<int64_t>(c.texts(kPart + ".labels").size());
    b.output("logits", t.logits(t.hidden(), head, labels));
  }
  return program;
}

}  // namespace

Family vit_style() {
  static const std::vector<const char*> types = vit::model_types();
  return {"ViTStyle", types, complete, build};
}

}  // namespace cyb
