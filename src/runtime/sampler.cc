// SPDX-License-Identifier: Apache-2.0
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/philox.h"

namespace cyb {

int32_t Sampler::sample(std::span<float> logits, std::span<const int32_t> history) {
  const auto& s = settings_;
  const bool penalties = s.repetition_penalty != 1 || s.presence_penalty != 0 || s.frequency_penalty != 0;
  if (penalties) {
    const size_t n = s.penalty_window > 0 ? std::min(history.size(), static_cast<size_t>(s.penalty_window)) : history.size();
    window_.assign(history.end() - static_cast<long>(n), history.end());
    std::sort(window_.begin(), window_.end());
    for (size_t i = 0; i < window_.size();) {
      size_t end = i;
      while (end < window_.size() && window_[end] == window_[i]) end++;
      const int32_t id = window_[i];
      if (id >= 0 && static_cast<size_t>(id) < logits.size()) {
        float& l = logits[static_cast<size_t>(id)];
        l = l > 0 ? static_cast<float>(l / s.repetition_penalty) : static_cast<float>(l * s.repetition_penalty);
        l -= static_cast<float>(s.presence_penalty + s.frequency_penalty * static_cast<double>(end - i));
      }
      i = end;
    }
  }
  if (s.temperature <= 0 || s.top_k == 1) {
    size_t best = 0;
    for (size_t i = 1; i < logits.size(); i++)
      if (logits[i] > logits[best]) best = i;
    return static_cast<int32_t>(best);
  }
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); i++) candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  auto larger = [](const Candidate& a, const Candidate& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); };
  size_t kept = candidates_.size();
  if (s.top_k > 0) kept = std::min(kept, static_cast<size_t>(s.top_k));
  if (kept < candidates_.size())
    std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<long>(kept), candidates_.end(), larger);
  else
    std::sort(candidates_.begin(), candidates_.end(), larger);
  weights_.clear();
  double total = 0;
  for (size_t i = 0; i < kept; i++) {
    weights_.push_back(std::exp((static_cast<double>(candidates_[i].logit) - candidates_[0].logit) / s.temperature));
    total += weights_.back();
  }
  if (s.top_p < 1) {
    double sum = 0;
    size_t n = 0;
    while (n < kept) {
      sum += weights_[n++];
      if (sum >= s.top_p * total) break;
    }
    kept = std::max<size_t>(n, 1);
  }
  if (s.min_p > 0) {
    size_t n = 1;
    while (n < kept && weights_[n] >= s.min_p * weights_[0]) n++;
    kept = n;
  }
  total = 0;
  for (size_t i = 0; i < kept; i++) total += weights_[i];
  double u = philox_uniform(s.seed, drawn_++) * total;
  for (size_t i = 0; i < kept; i++) {
    u -= weights_[i];
    if (u < 0) return candidates_[i].id;
  }
  return candidates_[kept - 1].id;
}

}  // namespace cyb
