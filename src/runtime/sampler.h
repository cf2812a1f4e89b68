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

// Deterministic: token n of a sequence depends on the logits, the settings and n only (counter-based
// generator). Order as in transformers' generation: penalties, temperature, top-k, top-p, min-p. Candidates
// are ordered by falling logits, equal ones by rising ids. Of a large vocabulary only the few around a bound
// are sorted.
class Sampler {
 public:
  explicit Sampler(const SamplerSettings& settings) : settings_(settings) {}
  // `history`: all tokens so far. `logits` are changed. NaN is never drawn; a largest logit that is not
  // finite is always taken.
  int32_t sample(std::span<float> logits, std::span<const int32_t> history);
  void restart() { drawn_ = 0; }

  // Probabilities beside that of `top`, the largest logit.
  static void shares(std::span<const float> logits, float top, double temperature, std::vector<float>& out);
  // The same in units of 2^-40: integers, whose sums are the same in any order.
  static int64_t weight(float share) { return share > 0 ? static_cast<int64_t>(share * 0x1p40f) : 0; }

 private:
  struct Candidate {
    float logit;
    int32_t id;
    int64_t weight;
  };
  static bool comes_first(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  void penalize(std::span<float> logits, std::span<const int32_t> history);
  // Appends those that `in` takes.
  template <class In>
  void gather(std::span<const float> logits, In&& in);
  void gather_top(std::span<const float> logits, size_t count);
  void weigh_candidates();
  int64_t weight_of_candidates(size_t begin, size_t end) const;
  // The candidate with which the sum of weights, in order, first exceeds `target`; those before it come
  // first.
  size_t find(int64_t target);
  // What is drawn where top-k or min-p leave a few, and where they are off.
  int32_t draw_of_few(std::span<const float> logits, double uniform);
  int32_t draw_of_all(std::span<const float> logits, double uniform);

  SamplerSettings settings_;
  uint64_t drawn_ = 0;
  float top_ = 0;
  std::vector<Candidate> candidates_;
  std::vector<float> logits_, shares_;
  std::vector<int32_t> counts_;
};

}  // namespace cyb
