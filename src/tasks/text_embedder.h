// SPDX-License-Identifier: Apache-2.0
// Sentence embeddings: one vector for a text, pooled from its tokens' as the model says.
#pragma once

#include "tasks/text_encoder.h"

namespace cyb {

class TextEmbedder {
 public:
  TextEmbedder(const std::string& path, const OpenOptions& options);

  TextEncoder& encoder() { return encoder_; }
  int64_t dimensions() const { return dimensions_; }
  bool normalizes() const { return normalize_; }
  // The text that stands before every other under this name ("query"). Throws Usage, listing those there are.
  std::string prompt(const std::string& name) const;
  // The model's own choice; empty: none.
  std::string default_prompt() const;

  // Some models have additions to their weights for tasks ("retrieval.query"), with a text that stands before
  // every other. Throws Usage, listing those there are.
  void set_task(const std::string& name);
  std::string task_prompt() const { return task_prompt_; }

  // Vectors in the order of the texts, `dimensions()` values each. `truncated`, if wanted, counts texts that
  // were too long.
  std::vector<float> embed(std::span<const std::string> texts, int64_t batch, const std::string& prompt = {},
                           int64_t* truncated = nullptr);

 private:
  enum class Mode { cls, max, mean, mean_sqrt, weighted_mean, last };
  void pool(std::span<const float> tokens, float* out) const;
  TextEncoder encoder_;
  std::vector<Mode> modes_;
  bool normalize_ = false;
  int64_t width_ = 0, pooled_ = 0, dimensions_ = 0;
  int32_t task_ = -1;
  std::string task_prompt_;
};

}  // namespace cyb
