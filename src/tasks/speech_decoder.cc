// SPDX-License-Identifier: Apache-2.0
#include "tasks/speech_decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cyb {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// log Σ e^x. What is e^25 times rarer than the largest does not change the sum.
float log_sum(std::span<const float> x) {
  float top = kNever;
  for (const float v : x) top = std::max(top, v);
  if (top == kNever) return kNever;
  double sum = 0;
  for (const float v : x)
    if (v > top - 25) sum += std::exp(v - top);
  return top + static_cast<float>(std::log(sum));
}

size_t index_of_start(const std::vector<int32_t>& prompt, int32_t start) {
  return static_cast<size_t>(std::find(prompt.begin(), prompt.end(), start) - prompt.begin());
}

}  // namespace

void SpeechDecoder::allow(const float* logits, const std::vector<int32_t>& tokens,
                          const SpeechDecoding& how) {
  const SpeechTokens& t = m_.tokens();
  const auto size = static_cast<size_t>(m_.vocabulary());
  probabilities_.assign(logits, logits + size);
  const auto hide = [&](int32_t from, int32_t to) {
    std::fill(probabilities_.begin() + from, probabilities_.begin() + std::max(from, to), kNever);
  };
  const auto end = static_cast<int32_t>(size);
  for (const int32_t id : t.suppressed) probabilities_[static_cast<size_t>(id)] = kNever;
  if (tokens.empty())
    for (const int32_t id : t.blank) probabilities_[static_cast<size_t>(id)] = kNever;
  if (!how.timestamps) {
    hide(t.first_time, end);
  } else {
    const size_t n = tokens.size();
    const bool last = n >= 1 && tokens[n - 1] >= t.first_time;
    const bool before = n < 2 || tokens[n - 2] >= t.first_time;
    // Times come in pairs, but for the first and for one directly before the end.
    if (last && before) hide(t.first_time, end);
    if (last && !before) hide(0, t.end);
    // They never go back, and a pair that encloses a text takes some time.
    for (size_t i = n; i-- > 0;) {
      if (tokens[i] < t.first_time) continue;
      hide(t.first_time, last && !before ? tokens[i] : tokens[i] + 1);
      break;
    }
    if (n == 0) {
      hide(0, t.first_time);
      hide(static_cast<int32_t>(std::min<int64_t>(t.first_time + how.first_time + 1, end)), end);
    }
    // A time is due where all of them together are likelier than any text.
    const std::span<const float> all(probabilities_);
    const auto first = static_cast<size_t>(t.first_time);
    const float text = *std::max_element(all.begin(), all.begin() + t.first_time);
    if (log_sum(all.subspan(first)) > text) hide(0, t.first_time);
  }
  const float total = log_sum(probabilities_);
  for (float& p : probabilities_) p -= total;
}

float SpeechDecoder::no_speech(const float* logits) const {
  const float total = log_sum({logits, static_cast<size_t>(m_.vocabulary())});
  return std::exp(logits[m_.tokens().no_speech] - total);
}

bool SpeechDecoder::full(const std::vector<int32_t>& prompt, const Row& row) const {
  return static_cast<int64_t>(prompt.size() + row.result.tokens.size()) >= m_.most_tokens();
}

std::vector<SpeechResult> SpeechDecoder::greedy(std::span<const int> windows,
                                                std::span<const std::vector<int32_t>> prompts,
                                                const SpeechDecoding& how) {
  const int32_t end = m_.tokens().end;
  const size_t n = windows.size();
  m_.place(windows);
  std::vector<Row> rows(n);
  std::vector<std::span<const int32_t>> next(prompts.begin(), prompts.end());
  std::vector<SpeechModel::Place> wanted;
  std::vector<int32_t> last(n);
  for (size_t b = 0; b < n; b++)
    wanted.push_back({static_cast<int>(b), static_cast<int64_t>(prompts[b].size()) - 1});
  for (size_t b = 0; b < n; b++)
    wanted.push_back(
        {static_cast<int>(b), static_cast<int64_t>(index_of_start(prompts[b], m_.tokens().start))});
  for (bool first = true;; first = false) {
    const float* logits = m_.decode(next, wanted);
    const int64_t size = m_.vocabulary();
    if (first)
      for (size_t b = 0; b < n; b++)
        rows[b].result.no_speech = no_speech(logits + static_cast<int64_t>(n + b) * size);
    size_t active = 0, at = 0;
    for (size_t b = 0; b < n; b++) {
      Row& row = rows[b];
      if (row.done) continue;
      allow(logits + static_cast<int64_t>(at++) * size, row.result.tokens, how);
      const auto best = std::max_element(probabilities_.begin(), probabilities_.end());
      const auto token = static_cast<int32_t>(best - probabilities_.begin());
      row.result.log_probability += static_cast<double>(*best);
      if (token == end) {
        row.done = true;
      } else {
        row.result.tokens.push_back(token);
        row.done = full(prompts[b], row);
      }
      last[b] = token;
      if (!row.done) active = b + 1;
    }
    if (active == 0) break;
    // Rows behind the last active one are left out, those between rest.
    next.clear();
    wanted.clear();
    for (size_t b = 0; b < active; b++) {
      next.push_back(rows[b].done ? std::span<const int32_t>() : std::span<const int32_t>(&last[b], 1));
      if (!rows[b].done) wanted.push_back({static_cast<int>(b), 0});
    }
  }
  std::vector<SpeechResult> out;
  for (Row& r : rows) out.push_back(std::move(r.result));
  return out;
}

int32_t SpeechDecoder::draw(double temperature, std::mt19937_64& random) {
  const float top = *std::max_element(probabilities_.begin(), probabilities_.end());
  const auto weight = [&](float p) {
    const double x = (static_cast<double>(p) - static_cast<double>(top)) / temperature;
    return x > -40 ? std::exp(x) : 0;  // what is rarer is never drawn
  };
  double sum = 0;
  for (const float p : probabilities_) sum += weight(p);
  // 53 bits: the same number on every system.
  double left = static_cast<double>(random() >> 11) * 0x1p-53 * sum;
  int32_t chosen = 0;
  for (size_t i = 0; i < probabilities_.size(); i++) {
    const double w = weight(probabilities_[i]);
    if (w == 0) continue;
    chosen = static_cast<int32_t>(i);
    left -= w;
    if (left < 0) break;
  }
  return chosen;
}

const float* SpeechDecoder::begin(int window, int rows, const std::vector<int32_t>& prompt,
                                  float* no_speech_out) {
  const std::vector<int> places(static_cast<size_t>(rows), window);
  m_.place(places);
  const std::span<const int32_t> one[] = {prompt};
  const SpeechModel::Place wanted[] = {{0, static_cast<int64_t>(prompt.size()) - 1},
                                       {0, static_cast<int64_t>(index_of_start(prompt, m_.tokens().start))}};
  const float* logits = m_.decode(one, wanted);
  *no_speech_out = no_speech(logits + m_.vocabulary());
  const std::vector<int32_t> copies(static_cast<size_t>(rows), 0);
  m_.select(copies);
  return logits;
}

SpeechResult SpeechDecoder::search(int window, const std::vector<int32_t>& prompt, const SpeechDecoding& how,
                                   uint64_t seed) {
  if (how.temperature == 0) return beams(window, prompt, how);
  const int32_t end = m_.tokens().end;
  const auto n = static_cast<size_t>(how.best_of);
  std::mt19937_64 random(seed);
  std::vector<Row> rows(n);
  float silence = 0;
  const float* logits = begin(window, how.best_of, prompt, &silence);
  std::vector<std::span<const int32_t>> next;
  std::vector<SpeechModel::Place> wanted;
  std::vector<int32_t> last(n);
  for (bool first = true;; first = false) {
    if (!first) logits = m_.decode(next, wanted);
    size_t active = 0, at = 0;
    for (size_t b = 0; b < n; b++) {
      Row& row = rows[b];
      if (row.done) continue;
      allow(logits + (first ? 0 : static_cast<int64_t>(at++) * m_.vocabulary()), row.result.tokens, how);
      const int32_t token = draw(how.temperature, random);
      row.result.log_probability += static_cast<double>(probabilities_[static_cast<size_t>(token)]);
      row.done = token == end;
      if (!row.done) {
        row.result.tokens.push_back(token);
        row.done = full(prompt, row);
      }
      last[b] = token;
      if (!row.done) active = b + 1;
    }
    if (active == 0) break;
    next.clear();
    wanted.clear();
    for (size_t b = 0; b < active; b++) {
      next.push_back(rows[b].done ? std::span<const int32_t>() : std::span<const int32_t>(&last[b], 1));
      if (!rows[b].done) wanted.push_back({static_cast<int>(b), 0});
    }
  }
  const auto score = [](const Row& r) {
    return r.result.log_probability / static_cast<double>(std::max<size_t>(r.result.tokens.size(), 1));
  };
  Row& best = *std::max_element(rows.begin(), rows.end(),
                                [&](const Row& a, const Row& b) { return score(a) < score(b); });
  best.result.no_speech = silence;
  return std::move(best.result);
}

SpeechResult SpeechDecoder::beams(int window, const std::vector<int32_t>& prompt, const SpeechDecoding& how) {
  const int32_t end = m_.tokens().end;
  const auto n = static_cast<size_t>(how.beams);
  float silence = 0;
  const float* logits = begin(window, how.beams, prompt, &silence);
  std::vector<SpeechResult> live(1), finished;
  struct Step {
    size_t from;
    int32_t token;
    double score;
  };
  while (true) {
    std::vector<Step> steps;
    for (size_t b = 0; b < live.size(); b++) {
      allow(logits + static_cast<int64_t>(b) * m_.vocabulary(), live[b].tokens, how);
      // One more than there are beams: one of them may be the end.
      std::vector<int32_t> best(probabilities_.size());
      for (size_t i = 0; i < best.size(); i++) best[i] = static_cast<int32_t>(i);
      const auto better = [&](int32_t x, int32_t y) {
        const float a = probabilities_[static_cast<size_t>(x)], c = probabilities_[static_cast<size_t>(y)];
        return a != c ? a > c : x < y;
      };
      std::partial_sort(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(n + 1), best.end(), better);
      for (size_t i = 0; i <= n; i++)
        if (const float p = probabilities_[static_cast<size_t>(best[i])]; p != kNever)
          steps.push_back({b, best[i], live[b].log_probability + static_cast<double>(p)});
    }
    std::stable_sort(steps.begin(), steps.end(),
                     [](const Step& a, const Step& b) { return a.score > b.score; });
    std::vector<SpeechResult> next;
    std::vector<int32_t> from;
    for (const Step& s : steps) {
      if (next.size() == n) break;
      SpeechResult r = live[s.from];
      r.log_probability = s.score;
      if (s.token == end) {
        if (finished.size() < n) finished.push_back(std::move(r));
        continue;
      }
      r.tokens.push_back(s.token);
      next.push_back(std::move(r));
      from.push_back(static_cast<int32_t>(s.from));
    }
    live = std::move(next);
    if (finished.size() >= n || live.empty() ||
        static_cast<int64_t>(prompt.size() + live[0].tokens.size()) >= m_.most_tokens())
      break;
    m_.select(from);
    std::vector<std::span<const int32_t>> tokens;
    std::vector<SpeechModel::Place> wanted;
    for (size_t b = 0; b < live.size(); b++) {
      tokens.emplace_back(&live[b].tokens.back(), 1);
      wanted.push_back({static_cast<int>(b), 0});
    }
    logits = m_.decode(tokens, wanted);
  }
  for (SpeechResult& r : live)
    if (finished.size() < n) finished.push_back(std::move(r));
  const auto score = [](const SpeechResult& r) {
    return r.log_probability / static_cast<double>(std::max<size_t>(r.tokens.size(), 1));
  };
  SpeechResult& best =
      *std::max_element(finished.begin(), finished.end(),
                        [&](const SpeechResult& a, const SpeechResult& b) { return score(a) < score(b); });
  best.no_speech = silence;
  return std::move(best);
}

}  // namespace cyb
