// SPDX-License-Identifier: Apache-2.0
// Extractive question answering: the span of a text that answers a question. Long texts are read in windows
// that overlap; scores and the choice of spans are those of the reference's pipeline.
#pragma once

#include "tasks/text_encoder.h"

namespace cyb {

struct AnswerOptions {
  int64_t top = 1;
  int64_t window = 384;     // tokens at once, question included; never more than the model takes
  int64_t stride = 128;     // tokens that a window shares with the next one
  int64_t longest = 15;     // tokens of an answer
  bool allow_none = false;  // an empty answer is one of the choices
};

class QuestionAnswerer {
 public:
  struct Span {
    std::string text;
    double score = 0;
    int64_t begin = 0, end = 0;  // characters of the context
  };
  QuestionAnswerer(const std::string& path, const OpenOptions& options);
  TextEncoder& encoder() { return encoder_; }
  // The likeliest first; at most `options.top`. Throws Usage where question and window do not fit together.
  std::vector<Span> answer(const std::string& question, const std::string& context,
                           const AnswerOptions& options, int64_t batch);

 private:
  TextEncoder encoder_;
};

}  // namespace cyb
