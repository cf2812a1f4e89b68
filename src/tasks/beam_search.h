// SPDX-License-Identifier: Apache-2.0
// What the search for a sequence follows: rules on the scores of the next token, and beams. Both as
// transformers' generate has them, names included; nothing here runs a model.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "runtime/sampler.h"

namespace cyb {

enum class EarlyStopping { no, yes, never };

struct SearchOptions {
  int64_t beams = 1;
  int64_t results = 1;       // of each input, best first; at most `beams`
  int64_t max_length = 256;  // tokens of prompt and result together
  int64_t min_length = 0, min_new_tokens = 0;
  double length_penalty = 1;
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t no_repeat_ngram = 0;
  // No n tokens in a row that stand so in the input; `sources` are the inputs' tokens, where this is asked
  // for.
  int64_t encoder_no_repeat_ngram = 0;
  std::vector<std::vector<int32_t>> sources;
  double repetition_penalty = 1;
  std::vector<int32_t> eos;
  std::optional<int32_t> forced_bos;  // the token behind a prompt of one
  std::vector<int32_t> forced_eos;    // at the last position
  std::vector<int32_t> suppress, begin_suppress;
  std::vector<std::vector<int32_t>> bad_words;
  std::optional<SamplerSettings> sampler;  // draws instead of taking the best; without beams only
};

struct Hypothesis {
  std::vector<int32_t> tokens;  // behind the prompt, the end token included where there is one
  bool finished = false;        // by an end token
  float score = 0;              // with beams: log-probability / length^length_penalty; else the former
  float log_prob = 0;           // summed over the tokens, after the rules
};

// A sequence whose next token is to be chosen.
struct SearchStep {
  size_t input = 0;                 // which prompt it began with
  std::span<const int32_t> tokens;  // prompt and result so far
  size_t prompt = 0;                // tokens of the prompt
};
// Changes the scores of a step in place, after the rules of SearchOptions: logits, or log-probabilities with
// beams. −inf excludes a token.
using LogitsHook = std::function<void(const SearchStep&, std::span<float>)>;

// Applies the rules of SearchOptions in the reference's order.
void apply_rules(const SearchOptions& options, const SearchStep& step, std::span<float> scores);

// x − log Σ exp x, in place.
void log_softmax(std::span<float> x);

// The beams of one input.
class Beams {
 public:
  Beams(const SearchOptions& options, std::span<const int32_t> prompt);

  int64_t count() const { return count_; }
  // Tokens of running beam k, the prompt included. All have the same length.
  std::span<const int32_t> tokens(int64_t k) const { return running_[static_cast<size_t>(k)].tokens; }
  // `scores`: log-probabilities of the next token, [count, vocabulary]. Afterwards beam k continues what was
  // beam parent(k), with one token more.
  void advance(std::span<const float> scores);
  int64_t parent(int64_t k) const { return parents_[static_cast<size_t>(k)]; }
  bool done() const { return done_; }
  // Best first, when done.
  std::vector<Hypothesis> results() const;

 private:
  struct Beam {
    std::vector<int32_t> tokens;
    float score = -1e9f;  // running: sum of log-probabilities; finished: over the penalized length
    float log_prob = -1e9f;
    bool finished = false, ended = false;
  };
  const SearchOptions* options_;
  int64_t count_, prompt_;
  std::vector<Beam> running_, finished_;
  std::vector<int64_t> parents_;
  bool improvable_ = true, done_ = false;
};

}  // namespace cyb
