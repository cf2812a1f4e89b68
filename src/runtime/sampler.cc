// SPDX-License-Identifier: Apache-2.0
#include "runtime/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/cpu_features.h"
#include "base/philox.h"
#include "ops/activation/activation.h"

namespace cyb {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr size_t kBlock = 32;

// Whole vectors, as below.
float largest(std::span<const float> v) {
  float top[kBlock];
  std::fill(top, top + kBlock, -kInfinity);
  size_t i = 0;
  for (; i + kBlock <= v.size(); i += kBlock)
    for (size_t k = 0; k < kBlock; k++) top[k] = v[i + k] > top[k] ? v[i + k] : top[k];
  for (; i < v.size(); i++) top[0] = v[i] > top[0] ? v[i] : top[0];
  return *std::max_element(top, top + kBlock);
}

// f(begin, end) for the blocks in which `in` takes something, until f returns true.
template <class In, class F>
void blocks_with(std::span<const float> v, In&& in, F&& f) {
  size_t at = 0;
  for (; at + kBlock <= v.size(); at += kBlock) {
    int any = 0;
    for (size_t k = 0; k < kBlock; k++) any |= in(v[at + k]);
    if (any && f(at, at + kBlock)) return;
  }
  if (at < v.size()) f(at, v.size());
}

// The first value that is not below `low`; 0 when there is none.
size_t first_from(std::span<const float> v, float low) {
  size_t found = 0;
  const auto in = [low](float l) { return l >= low; };
  blocks_with(v, in, [&](size_t begin, size_t end) {
    while (begin < end && !in(v[begin])) begin++;
    if (begin == end) return false;
    found = begin;
    return true;
  });
  return found;
}

// Logits fall into bins by how far they are below the top.
struct Bins {
  static constexpr int kCount = 128, kPerUnit = 4;
  float top, scale;
  Bins(float t, double temperature)
      : top(t), scale(static_cast<float>(std::min(kPerUnit / temperature, 1e38))) {}
  float place(float logit) const { return (top - logit) * scale; }
  int of(float logit) const {
    const float p = place(logit);
    return static_cast<int>(p < kCount - 1 ? p : kCount - 1);  // NaN goes into the last
  }
};

// The smallest float that is not below x.
float round_up(double x) {
  const auto f = static_cast<float>(x);
  return static_cast<double>(f) < x ? std::nextafter(f, kInfinity) : f;
}

// Of weights in order: the sum that the last of those exceeds which together have the share `p`.
int64_t last_of_share(int64_t total, double p) {
  const auto wanted = static_cast<int64_t>(std::ceil(p * static_cast<double>(total)));
  return std::clamp<int64_t>(wanted, 1, total) - 1;
}

int64_t drawn_weight(int64_t total, double uniform) {
  return std::min(static_cast<int64_t>(uniform * static_cast<double>(total)), total - 1);
}

}  // namespace

void Sampler::shares(std::span<const float> logits, float top, double temperature, std::vector<float>& out) {
  out.resize(logits.size());
  const auto scale = static_cast<float>(std::min(1 / temperature, 1e38));  // finite: the top's share is 1
  for (size_t i = 0; i < logits.size(); i++) out[i] = (logits[i] - top) * scale;
  activation_kernels(detect_isa())
      .activate({.activation = Activation::exp, .x = out.data(), .y = out.data()}, 0,
                static_cast<int64_t>(out.size()));
}

void Sampler::penalize(std::span<float> logits, std::span<const int32_t> history) {
  const auto& s = settings_;
  if (s.repetition_penalty == 1 && s.presence_penalty == 0 && s.frequency_penalty == 0) return;
  if (s.penalty_window > 0 && history.size() > static_cast<size_t>(s.penalty_window))
    history = history.last(static_cast<size_t>(s.penalty_window));
  counts_.resize(logits.size());
  const auto is_token = [&](int32_t id) { return id >= 0 && static_cast<size_t>(id) < logits.size(); };
  for (int32_t id : history)
    if (is_token(id)) counts_[static_cast<size_t>(id)]++;
  for (int32_t id : history) {
    if (!is_token(id)) continue;
    const int32_t count = std::exchange(counts_[static_cast<size_t>(id)], 0);
    if (count == 0) continue;  // done
    float& l = logits[static_cast<size_t>(id)];
    l = l > 0 ? static_cast<float>(l / s.repetition_penalty) : static_cast<float>(l * s.repetition_penalty);
    l -= static_cast<float>(s.presence_penalty + s.frequency_penalty * count);
  }
}

template <class In>
void Sampler::gather(std::span<const float> logits, In&& in) {
  blocks_with(logits, in, [&](size_t begin, size_t end) {
    size_t found[kBlock], count = 0;
    for (size_t i = begin; i < end; i++) {  // without branches, which would go either way
      found[count] = i;
      count += in(logits[i]);
    }
    for (size_t k = 0; k < count; k++) {
      const size_t i = found[k];
      candidates_.push_back({logits[i], static_cast<int32_t>(i), shares_.empty() ? 0 : weight(shares_[i])});
    }
    return false;
  });
}

void Sampler::gather_top(std::span<const float> logits, size_t count) {
  float high = kInfinity;
  // The largest logits of a language model lie within a few units.
  for (float reach = 4; candidates_.size() < count && high > -kInfinity; reach *= 2) {
    const float low = reach < 1000 ? top_ - reach : -kInfinity;
    gather(logits, [low, high](float l) { return (l >= low) & (l < high); });
    high = low;
  }
  if (candidates_.size() <= count) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + static_cast<long>(count), candidates_.end(),
                   comes_first);
  candidates_.resize(count);
}

void Sampler::weigh_candidates() {
  logits_.clear();
  for (const Candidate& c : candidates_) logits_.push_back(c.logit);
  shares(logits_, top_, settings_.temperature, shares_);
  for (size_t i = 0; i < candidates_.size(); i++) candidates_[i].weight = weight(shares_[i]);
}

int64_t Sampler::weight_of_candidates(size_t begin, size_t end) const {
  int64_t sum = 0;
  for (size_t i = begin; i < end; i++) sum += candidates_[i].weight;
  return sum;
}

size_t Sampler::find(int64_t target) {
  size_t begin = 0, end = candidates_.size();
  const auto first = candidates_.begin();
  while (end - begin > 16) {
    const size_t middle = begin + (end - begin) / 2;
    std::nth_element(first + static_cast<long>(begin), first + static_cast<long>(middle),
                     first + static_cast<long>(end), comes_first);
    const int64_t sum = weight_of_candidates(begin, middle);
    if (target < sum) {
      end = middle;
    } else {
      target -= sum;
      begin = middle;
    }
  }
  std::sort(first + static_cast<long>(begin), first + static_cast<long>(end), comes_first);
  while (begin + 1 < end && target >= candidates_[begin].weight) target -= candidates_[begin++].weight;
  return begin;
}

int32_t Sampler::draw_of_few(std::span<const float> logits, double uniform) {
  const auto& s = settings_;
  const float floor =
      s.min_p > 0 ? std::min(top_, round_up(top_ + s.temperature * std::log(s.min_p))) : -kInfinity;
  int64_t total = 0;
  if (s.top_k > 0) {
    gather_top(logits, static_cast<size_t>(s.top_k));
    weigh_candidates();
    total = weight_of_candidates(0, candidates_.size());
    std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < floor; });
  } else if (s.top_p < 1) {
    shares(logits, top_, s.temperature, shares_);
    for (float share : shares_) total += weight(share);
    gather(logits, [floor](float l) { return l >= floor; });
  } else {
    gather(logits, [floor](float l) { return l >= floor; });
    weigh_candidates();
  }
  int64_t kept = weight_of_candidates(0, candidates_.size());
  if (s.top_p < 1) {
    if (const int64_t last = last_of_share(total, s.top_p); last < kept) candidates_.resize(find(last) + 1);
    kept = weight_of_candidates(0, candidates_.size());
  }
  return candidates_[find(drawn_weight(kept, uniform))].id;
}

int32_t Sampler::draw_of_all(std::span<const float> logits, double uniform) {
  const auto& s = settings_;
  shares(logits, top_, s.temperature, shares_);
  const Bins bins(top_, s.temperature);
  int64_t sums[4][Bins::kCount] = {};  // four, since additions to one place wait for each other
  for (size_t i = 0; i < logits.size(); i++) sums[i % 4][bins.of(logits[i])] += weight(shares_[i]);
  int64_t total = 0;
  for (int b = 0; b < Bins::kCount; b++) total += sums[0][b] += sums[1][b] + sums[2][b] + sums[3][b];
  // The candidates of the bin in which the sum of weights exceeds `target`, which becomes a sum within it.
  const auto gather_bin = [&](int64_t& target) {
    int b = 0;
    while (b + 1 < Bins::kCount && target >= sums[0][b]) target -= sums[0][b++];
    candidates_.clear();
    const auto low = static_cast<float>(b), high = b + 1 < Bins::kCount ? low + 1 : kInfinity;
    gather(logits, [bins, low, high](float l) { return (bins.place(l) >= low) & (bins.place(l) < high); });
  };
  int64_t kept = total;
  if (s.top_p < 1) {
    const int64_t last = last_of_share(total, s.top_p);
    int64_t within = last;
    gather_bin(within);
    kept = last - within + weight_of_candidates(0, find(within) + 1);
  }
  int64_t target = drawn_weight(kept, uniform);
  gather_bin(target);
  return candidates_[find(target)].id;
}

int32_t Sampler::sample(std::span<float> logits, std::span<const int32_t> history) {
  const auto& s = settings_;
  penalize(logits, history);
  top_ = largest(logits);
  if (s.temperature <= 0 || s.top_k == 1 || !std::isfinite(top_))
    return static_cast<int32_t>(first_from(logits, top_));

  candidates_.clear();
  shares_.clear();
  const double uniform = philox_uniform(s.seed, drawn_++);
  return s.top_k > 0 || s.min_p > 0 ? draw_of_few(logits, uniform) : draw_of_all(logits, uniform);
}

}  // namespace cyb
