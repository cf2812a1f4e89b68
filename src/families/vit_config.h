// SPDX-License-Identifier: Apache-2.0
// The settings of the towers of vit_tower.cc: from the keys of a config to plain fields. What differs between
// models is data.
#pragma once

#include <string>
#include <vector>

#include "families/vit_layers.h"
#include "format/config.h"

namespace cyb::vit {

// How one vector is made of a picture's tokens.
enum class Pooling {
  first,       // the first token's
  mean_norm,   // a norm of the mean over the patches
  first_norm,  // a norm of the first token's; the tokens themselves have no norm behind the layers
  probe,       // a learned query attends to all of them
};
enum class Head {
  none,
  classes,      // of the pooled vector
  class_pair,   // two classifiers, of the first two tokens; their mean
  class_patch,  // of the first token's vector and the mean of the patches
};

// One form of tower. Names are less the prefix of the tower; what it lacks is null.
struct Form {
  const char* model_type;
  LayerNames layer = {};
  const char* patches = "embeddings.patch_embeddings.projection";
  bool patch_bias = true;
  bool patch_rows = false;  // the matrix reads patches whose channels are innermost
  const char* cls = "embeddings.cls_token";
  const char* distillation = nullptr;
  const char* registers = nullptr;
  const char* positions = "embeddings.position_embeddings";
  bool position_rows = false;  // the table has two axes
  bool smooth = false;         // positions are resized with a filter over what they leave out
  bool linear = false;         // … and by straight lines
  const char* first_norm = nullptr;
  const char* norm = "layernorm";
  Pooling pooling = Pooling::first;
  Head head = Head::classes;
  double eps = 1e-12;
  const char* act = "gelu";
  int64_t hidden = 768, ffn = 0, layers = 12, heads = 12, image = 224, patch = 16;
  bool k_bias = true;
  bool relative = false;  // a bias by relative position, where the config says so
  bool rotary = false;    // patches are turned by their place
};

// Throws UnsupportedModel.
const Form& form_of(const std::string& model_type);
std::vector<const char*> model_types();
// Writes every key of `part` that a tower reads.
void complete_tower(Config& c, const Form& form, const std::string& part);

struct Tower {
  const Form* form = nullptr;
  Stack stack;
  int64_t channels = 3, patch = 16;
  int64_t rows = 14, columns = 14;  // of the grid that positions are trained for
  int64_t image_height = 224, image_width = 224;
  int64_t registers = 0;
  bool mean = false;  // Pooling::mean_norm
  bool position_table = true, relative = false;
  bool pooler = false;  // a layer and tanh behind the first token
  bool pools = true;
  double theta = 100;
  // Tokens before the patches: of the position table, and all.
  int64_t special() const { return (form->cls ? 1 : 0) + (form->distillation ? 1 : 0); }
  int64_t before() const { return special() + registers; }
};
// Throws InvalidConfig.
Tower read_tower(const Config& c, const Form& form, const std::string& part, const std::string& prefix);

}  // namespace cyb::vit
