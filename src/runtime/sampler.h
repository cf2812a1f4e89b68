// SPDX-License-Identifier: Apache-2.0
// Chooses the next token from logits.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cyb {

struct SamplerSettings {
  double temperature = 0;  // 0: the largest logit
  int64_t top_k = 0;       // 0: all
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;  // CTRL (Keskar et al. 2019): divides positive, multiplies negative logits
  double presence_penalty = 0;    // subtracted once from each token seen
  double frequency_penalty = 0;   // subtracted for each time that it was seen
  int64_t penalty_window = 0;     // last tokens looked at, the prompt included; 0: all
  uint64_t seed = 0;
};

// Deterministic: token n of a sequence depends on the logits, the settings and n only (counter-based generator).
// Order as in transformers' generation: penalties, temperature, top-k, top-p, min-p.
class Sampler {
 public:
  explicit Sampler(const SamplerSettings& settings) : settings_(settings) {}
  // `history`: all tokens so far. `logits` are changed.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history);
  void restart() { drawn_ = 0; }

 private:
  SamplerSettings settings_;
  uint64_t drawn_ = 0;
  struct Candidate {
    float logit;
    int32_t id;
  };
  std::vector<Candidate> candidates_;
  std::vector<int32_t> window_;
  std::vector<double> weights_;
};

}  // namespace cyb
