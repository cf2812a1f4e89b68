// SPDX-License-Identifier: Apache-2.0
#include "tasks/text_embedder.h"

#include <algorithm>
#include <cmath>

namespace cyb {

TextEmbedder::TextEmbedder(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "encode") {
  const Config& c = encoder_.config();
  static constexpr const char* kNames[] = {"cls", "max", "mean", "mean_sqrt", "weighted_mean", "last"};
  // A plain encoder says nothing: the mean, as the sentence-transformers library takes it then.
  for (const std::string& name : c.texts_or("pooling.modes", {"mean"})) {
    const auto* found = std::find(std::begin(kNames), std::end(kNames), name);
    if (found == std::end(kNames)) throw c.invalid("pooling.modes", "unknown kind of pooling '{}'", name);
    modes_.push_back(static_cast<Mode>(found - std::begin(kNames)));
  }
  normalize_ = c.boolean_or("pooling.normalize", false);
  width_ = c.integer("architecture.hidden_size");
  pooled_ = width_ * static_cast<int64_t>(modes_.size());
  const std::vector<int64_t> dense = c.integers_or("pooling.dense_widths", {});
  dimensions_ = dense.empty() ? pooled_ : dense.back();
}

std::string TextEmbedder::prompt(const std::string& name) const {
  const Config prompts = encoder_.config().sub("pooling.prompts");
  std::string known;
  for (const std::string& key : prompts.keys()) {
    if (key == name) return prompts.text("\"" + key + "\"");
    known += (known.empty() ? "" : ", ") + key;
  }
  throw error(ErrorKind::Usage, "the model has no prompt '{}'", name)
      .advise("{}", known.empty() ? "it has none; put the text before your own" : "it has: " + known);
}

void TextEmbedder::set_task(const std::string& name) {
  const Config& c = encoder_.config();
  const std::vector<std::string> tasks = c.texts_or("architecture.lora_adaptations", {});
  std::string known;
  for (size_t i = 0; i < tasks.size(); i++) {
    known += (i ? ", " : "") + tasks[i];
    if (tasks[i] != name) continue;
    task_ = static_cast<int32_t>(i);
    const ConfigValue* texts = c.find("architecture.task_instructions");
    const ConfigValue* own = texts && texts->is_table() ? texts->table()->find(name) : nullptr;
    task_prompt_ = own && own->is_text() ? *own->text() : "";
    return;
  }
  throw error(ErrorKind::Usage, "the model has no task '{}'", name)
      .advise("{}", known.empty() ? "it has none: leave --task out" : "it has: " + known);
}

std::string TextEmbedder::default_prompt() const {
  const std::string name = encoder_.config().text_or("pooling.default_prompt", "");
  return name.empty() ? "" : prompt(name);
}

void TextEmbedder::pool(std::span<const float> tokens, float* out) const {
  const auto width = static_cast<size_t>(width_), count = tokens.size() / width;
  for (const Mode mode : modes_) {
    std::vector<double> sum(width);
    double weights = 0;
    for (size_t t = 0; t < count; t++) {
      const float* x = tokens.data() + t * width;
      const double w = mode == Mode::weighted_mean ? static_cast<double>(t + 1) : 1;
      weights += w;
      for (size_t i = 0; i < width; i++) sum[i] += w * static_cast<double>(x[i]);
    }
    if (mode == Mode::mean_sqrt) weights = std::sqrt(weights);
    for (size_t i = 0; i < width; i++) {
      if (mode == Mode::cls)
        out[i] = tokens[i];
      else if (mode == Mode::last)
        out[i] = tokens[(count - 1) * width + i];
      else
        out[i] = static_cast<float>(sum[i] / weights);
    }
    if (mode == Mode::max)
      for (size_t i = 0; i < width; i++) {
        out[i] = tokens[i];
        for (size_t t = 1; t < count; t++) out[i] = std::max(out[i], tokens[t * width + i]);
      }
    out += width;
  }
}

std::vector<float> TextEmbedder::embed(std::span<const std::string> texts, int64_t batch,
                                       const std::string& prompt, int64_t* truncated) {
  std::vector<TextEncoder::Input> inputs;
  inputs.reserve(texts.size());
  int64_t cut = 0;
  for (const std::string& text : texts) {
    inputs.push_back(encoder_.tokens(prompt + text));
    cut += inputs.back().truncated;
  }
  if (truncated) *truncated = cut;
  for (TextEncoder::Input& in : inputs) in.task = task_;
  const auto width = static_cast<size_t>(pooled_), size = static_cast<size_t>(dimensions_);
  Tensor pooled(DType::f32, {static_cast<int64_t>(texts.size()), pooled_});
  encoder_.run(inputs, batch,
               [&](size_t i, std::span<const float> tokens) { pool(tokens, &pooled.at<float>(i * width)); });
  if (encoder_.config().has("pooling.dense_widths")) {
    std::vector<Tensor> projected;
    const Tensor* values[] = {&pooled};
    encoder_.session().run("project", values, projected);
    pooled = std::move(projected[0]);
  }
  std::vector<float> out(pooled.as<float>(), pooled.as<float>() + texts.size() * size);
  for (size_t i = 0; normalize_ && i < texts.size(); i++) {
    float* y = out.data() + i * size;
    double squares = 0;
    for (size_t k = 0; k < size; k++) squares += static_cast<double>(y[k]) * static_cast<double>(y[k]);
    const double scale = 1 / std::max(std::sqrt(squares), 1e-12);
    for (size_t k = 0; k < size; k++) y[k] = static_cast<float>(static_cast<double>(y[k]) * scale);
  }
  return out;
}

}  // namespace cyb
