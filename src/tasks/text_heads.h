// SPDX-License-Identifier: Apache-2.0
// What encoders with heads say about texts: classes, entities, masked words, relevance. Scores are those of
// the reference's pipelines.
#pragma once

#include "tasks/text_encoder.h"

namespace cyb {

struct ScoredLabel {
  std::string label;
  float score = 0;
};

// Sequence classification. Scores are probabilities of one of the classes, or of each alone where the model
// says multi_label_classification or has one class only.
class TextClassifier {
 public:
  TextClassifier(const std::string& path, const OpenOptions& options);
  TextEncoder& encoder() { return encoder_; }
  // For each text all labels, the likeliest first.
  std::vector<std::vector<ScoredLabel>> classify(std::span<const std::string> texts, int64_t batch);

 private:
  TextEncoder encoder_;
  std::vector<std::string> labels_;
  bool each_alone_ = false;
};

// What gets a label: each token, or each word with the scores of its first token, the mean of its tokens', or
// those of its surest token.
enum class Aggregation { simple, first, average, max };

// Token classification: neighbours of one kind are one entity (B- begins a new one, O is none).
class EntityTagger {
 public:
  struct Entity {
    std::string label, text;
    float score = 0;               // the mean of its tokens' or words'
    int64_t begin = 0, end = 0;    // characters of the text
    int64_t first = 0, count = 0;  // tokens
    int64_t parts = 0;             // tokens or words that have the label
  };
  EntityTagger(const std::string& path, const OpenOptions& options);
  TextEncoder& encoder() { return encoder_; }
  std::vector<std::vector<Entity>> tag(std::span<const std::string> texts, int64_t batch,
                                       Aggregation aggregation = Aggregation::simple);

 private:
  TextEncoder encoder_;
  std::vector<std::string> labels_;
};

// Masked language models.
class MaskFiller {
 public:
  struct Word {
    int32_t id = 0;
    std::string text;
    float score = 0;
  };
  MaskFiller(const std::string& path, const OpenOptions& options);
  TextEncoder& encoder() { return encoder_; }
  std::string mask() const;  // how a gap is written
  // For each mask of the text its likeliest words. Throws Usage where the text has no mask.
  std::vector<std::vector<Word>> fill(const std::string& text, int64_t count);

 private:
  TextEncoder encoder_;
  int32_t mask_ = 0;
};

// Cross-encoders of one logit: how well a document answers a query.
class Reranker {
 public:
  Reranker(const std::string& path, const OpenOptions& options);
  TextEncoder& encoder() { return encoder_; }
  // In the order of the documents.
  std::vector<float> score(const std::string& query, std::span<const std::string> documents, int64_t batch);

 private:
  TextEncoder encoder_;
  bool squash_ = true;
};

}  // namespace cyb
