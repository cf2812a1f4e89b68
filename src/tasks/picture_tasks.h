// SPDX-License-Identifier: Apache-2.0
// What is done with pictures: classes (the model's own, or any that are named), vectors, comparisons.
#pragma once

#include "tasks/picture_model.h"
#include "tasks/text_heads.h"

namespace cyb {

class PictureClassifier {
 public:
  // Without `labels` the model's own classes. With them the texts that `prompt` makes of each ("a photo of a
  // {}") are compared with the pictures. Throws UnsupportedModel where the model can do neither; Usage.
  PictureClassifier(const std::string& path, const OpenOptions& options,
                    const std::vector<std::string>& labels = {},
                    const std::string& prompt = "a photo of a {}");

  PictureModel& model() { return model_; }
  // The likeliest label first.
  std::vector<std::vector<ScoredLabel>> classify(std::span<const Tensor> pixels, int64_t batch);

 private:
  PictureModel model_;
  std::vector<std::string> labels_;
  bool compares_ = false;    // labels are texts
  Tensor texts_;             // their vectors, f32[labels, E]
  bool each_alone_ = false;  // scores are sigmoids
};

class PictureEmbedder {
 public:
  PictureEmbedder(const std::string& path, const OpenOptions& options) : model_(path, options) {}

  PictureModel& model() { return model_; }
  // One vector each. Those of a pair's towers have the length 1 and lie in one space.
  std::vector<std::vector<float>> pictures(std::span<const Tensor> pixels, int64_t batch);
  std::vector<std::vector<float>> texts(std::span<const std::string> texts, int64_t batch,
                                        int64_t* truncated = nullptr);

 private:
  PictureModel model_;
};

}  // namespace cyb
