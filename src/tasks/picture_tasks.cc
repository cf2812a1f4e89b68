// SPDX-License-Identifier: Apache-2.0
#include "tasks/picture_tasks.h"

#include <algorithm>
#include <cmath>

namespace cyb {
namespace {

// The vector that stands for an input.
const char* vector_of(const ir::Graph& graph) {
  const auto& names = graph.output_names;
  const auto has = [&](const char* name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return has("embedding") ? "embedding" : "pooled";
}

Tensor rows_of(const std::vector<std::vector<float>>& rows) {
  std::vector<float> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  const auto n = static_cast<int64_t>(rows.size());
  return Tensor::f32({n, n ? static_cast<int64_t>(all.size()) / n : 0}, all);
}

std::string filled(const std::string& prompt, const std::string& label) {
  const size_t at = prompt.find("{}");
  if (at == std::string::npos)
    throw error(ErrorKind::Usage, "the template '{}' has no {{}} for the label", prompt)
        .advise("for example: a photo of a {{}}");
  return prompt.substr(0, at) + label + prompt.substr(at + 2);
}

std::vector<float> softmax(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> e;
  double sum = 0;
  for (const float x : logits) {
    e.push_back(std::exp(static_cast<double>(x) - static_cast<double>(most)));
    sum += e.back();
  }
  std::vector<float> out;
  for (const double x : e) out.push_back(static_cast<float>(x / sum));
  return out;
}

}  // namespace

PictureClassifier::PictureClassifier(const std::string& path, const OpenOptions& options,
                                     const std::vector<std::string>& labels, const std::string& prompt)
    : model_(path, options), labels_(labels) {
  const Config& c = model_.config();
  if (labels_.empty()) {
    if (!model_.has("classify"))
      throw error(ErrorKind::UnsupportedModel, "'{}' has no classes of its own", path)
          .advise("{}", model_.has("similarity") ? "name them: --labels cat,dog"
                                                 : "its task is to embed: cyb-llm embed");
    labels_ = c.texts("architecture.labels");
    each_alone_ =
        labels_.size() == 1 || c.text_or("architecture.problem_type", "") == "multi_label_classification";
    return;
  }
  if (!model_.has("similarity"))
    throw error(ErrorKind::UnsupportedModel, "'{}' does not compare pictures with texts", path)
        .advise("leave --labels out, or use a model with two towers, such as CLIP or SigLIP");
  compares_ = true;
  each_alone_ = c.boolean("architecture.logit_bias");
  std::vector<std::string> texts;
  for (const std::string& label : labels_) texts.push_back(filled(prompt, label));
  int64_t truncated = 0;
  const std::vector<Tensor> tokens = model_.tokens(texts, &truncated);
  if (truncated > 0)
    throw error(ErrorKind::Usage, "{} of {} labels are longer than the model reads", truncated, texts.size())
        .advise("use shorter ones");
  texts_ = rows_of(model_.run(model_.text_graph(), "embedding", tokens, 32));
}

std::vector<std::vector<ScoredLabel>> PictureClassifier::classify(std::span<const Tensor> pixels,
                                                                  int64_t batch) {
  std::vector<std::vector<float>> logits;
  if (!compares_) {
    logits = model_.run("classify", "logits", pixels, batch);
  } else {
    const Tensor pictures = rows_of(model_.run(model_.vision_graph(), "embedding", pixels, batch));
    const Tensor* inputs[] = {&pictures, &texts_};
    std::vector<Tensor> out;
    model_.session().run("similarity", inputs, out);
    const auto width = static_cast<int64_t>(labels_.size());
    for (size_t i = 0; i < pixels.size(); i++) {
      const float* row = out[0].as<float>() + static_cast<int64_t>(i) * width;
      logits.emplace_back(row, row + width);
    }
  }
  std::vector<std::vector<ScoredLabel>> results;
  for (const std::vector<float>& row : logits) {
    if (row.size() != labels_.size())
      throw error(ErrorKind::InvalidConfig, "{} labels for {} classes", labels_.size(), row.size());
    std::vector<float> scores = row;
    if (each_alone_)
      for (float& x : scores) x = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
    else
      scores = softmax(row);
    std::vector<ScoredLabel> sorted;
    for (size_t k = 0; k < scores.size(); k++) sorted.push_back({labels_[k], scores[k]});
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const ScoredLabel& a, const ScoredLabel& b) { return a.score > b.score; });
    results.push_back(std::move(sorted));
  }
  return results;
}

std::vector<std::vector<float>> PictureEmbedder::pictures(std::span<const Tensor> pixels, int64_t batch) {
  const char* graph = model_.vision_graph();
  return model_.run(graph, vector_of(model_.graph(graph)), pixels, batch);
}

std::vector<std::vector<float>> PictureEmbedder::texts(std::span<const std::string> texts, int64_t batch,
                                                       int64_t* truncated) {
  const char* graph = model_.text_graph();
  return model_.run(graph, vector_of(model_.graph(graph)), model_.tokens(texts, truncated), batch);
}

}  // namespace cyb
