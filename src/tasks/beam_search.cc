// SPDX-License-Identifier: Apache-2.0
#include "tasks/beam_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace cyb {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kLow = -1e9f;  // the reference's "not a candidate", which stays comparable

void only(std::span<float> scores, std::span<const int32_t> wanted) {
  std::fill(scores.begin(), scores.end(), kNever);
  for (const int32_t id : wanted)
    if (id >= 0 && static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = 0;
}

void exclude(std::span<float> scores, std::span<const int32_t> ids) {
  for (const int32_t id : ids)
    if (id >= 0 && static_cast<size_t>(id) < scores.size()) scores[static_cast<size_t>(id)] = kNever;
}

void penalize_repetition(double penalty, std::span<const int32_t> tokens, std::span<float> scores) {
  std::vector<int32_t> seen(tokens.begin(), tokens.end());
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  const auto p = static_cast<float>(penalty);
  for (const int32_t id : seen) {
    if (id < 0 || static_cast<size_t>(id) >= scores.size()) continue;
    float& s = scores[static_cast<size_t>(id)];
    s = s < 0 ? s * p : s / p;
  }
}

// Tokens that would end an n-gram that is in `source`.
void forbid_repeated(size_t n, std::span<const int32_t> source, std::span<const int32_t> tokens,
                     std::span<float> scores) {
  if (tokens.size() + 1 < n) return;
  const std::span<const int32_t> last = tokens.last(n - 1);
  for (size_t i = 0; i + n <= source.size(); i++)
    if (std::equal(last.begin(), last.end(), source.begin() + static_cast<std::ptrdiff_t>(i)))
      exclude(scores, source.subspan(i + n - 1, 1));
}

void forbid_words(const SearchOptions& o, std::span<const int32_t> tokens, std::span<float> scores) {
  for (const std::vector<int32_t>& word : o.bad_words) {
    if (word.empty() || (word.size() > 1 && word.size() > tokens.size())) continue;
    if (word.size() == 1 && std::find(o.eos.begin(), o.eos.end(), word[0]) != o.eos.end()) continue;
    const std::span<const int32_t> before(word.data(), word.size() - 1), last = tokens.last(before.size());
    if (std::equal(before.begin(), before.end(), last.begin())) exclude(scores, std::span(word).last(1));
  }
}

struct Candidate {
  float score;
  int64_t index;
};
bool better(const Candidate& a, const Candidate& b) {
  return a.score > b.score || (a.score == b.score && a.index < b.index);
}

// The `count` best of `scores` + `add[row]`, best first.
std::vector<Candidate> best_of(std::span<const float> scores, std::span<const float> add, size_t count) {
  const size_t row = scores.size() / add.size();
  std::vector<Candidate> heap;  // the worst on top
  heap.reserve(count + 1);
  for (size_t r = 0; r < add.size(); r++)
    for (size_t i = 0; i < row; i++) {
      const Candidate c{scores[r * row + i] + add[r], static_cast<int64_t>(r * row + i)};
      if (heap.size() == count && !better(c, heap.front())) continue;
      if (heap.size() == count) {
        std::pop_heap(heap.begin(), heap.end(), better);
        heap.pop_back();
      }
      heap.push_back(c);
      std::push_heap(heap.begin(), heap.end(), better);
    }
  std::sort_heap(heap.begin(), heap.end(), better);
  return heap;
}

// e^x for x ≤ 0, within 2e-7 of it; so plain that compilers take several at once.
inline float exp_below_one(float x) {
  constexpr float kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
  x = x < -87.0f ? -87.0f : x;
  const auto n = static_cast<int32_t>(x * kLog2e - 0.5f);
  const auto k = static_cast<float>(n);
  const float r = (x - k * kLn2High) - k * kLn2Low;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((n + 127) << 23);
}

float over_length(float log_prob, int64_t length, double penalty) {
  return log_prob / static_cast<float>(std::pow(static_cast<double>(length), penalty));
}

}  // namespace

void apply_rules(const SearchOptions& o, const SearchStep& step, std::span<float> scores) {
  const auto length = static_cast<int64_t>(step.tokens.size());
  if (o.repetition_penalty != 1) penalize_repetition(o.repetition_penalty, step.tokens, scores);
  if (o.no_repeat_ngram > 0)
    forbid_repeated(static_cast<size_t>(o.no_repeat_ngram), step.tokens, step.tokens, scores);
  if (o.encoder_no_repeat_ngram > 0 && step.input < o.sources.size())
    forbid_repeated(static_cast<size_t>(o.encoder_no_repeat_ngram), o.sources[step.input], step.tokens,
                    scores);
  if (!o.bad_words.empty()) forbid_words(o, step.tokens, scores);
  if (length < o.min_length || length - static_cast<int64_t>(step.prompt) < o.min_new_tokens)
    exclude(scores, o.eos);
  if (o.forced_bos && length == 1) only(scores, {&*o.forced_bos, 1});
  if (!o.forced_eos.empty() && length == o.max_length - 1) only(scores, o.forced_eos);
  exclude(scores, o.suppress);
  const size_t begin = step.prompt > 1 || !o.forced_bos ? step.prompt : step.prompt + 1;
  if (step.tokens.size() == begin) exclude(scores, o.begin_suppress);
}

void log_softmax(std::span<float> x) {
  float top = kNever;
  for (const float v : x) top = std::max(top, v);
  constexpr size_t kLanes = 16, kBlock = 1024;
  double sum = 0;
  for (size_t begin = 0; begin < x.size(); begin += kBlock) {
    const size_t end = std::min(begin + kBlock, x.size());
    float part[kLanes] = {};
    size_t i = begin;
    for (; i + kLanes <= end; i += kLanes)
      for (size_t k = 0; k < kLanes; k++) part[k] += exp_below_one(x[i + k] - top);
    for (; i < end; i++) part[0] += exp_below_one(x[i] - top);
    for (const float p : part) sum += static_cast<double>(p);
  }
  const auto log_sum = static_cast<float>(std::log(sum));
  for (float& v : x) v = v - top - log_sum;
}

Beams::Beams(const SearchOptions& options, std::span<const int32_t> prompt)
    : options_(&options), count_(options.beams), prompt_(static_cast<int64_t>(prompt.size())) {
  Beam first;
  first.tokens.assign(prompt.begin(), prompt.end());
  running_.assign(static_cast<size_t>(count_), first);
  // Only the first counts at first: the others are the same.
  running_[0].score = running_[0].log_prob = 0;
  finished_.assign(static_cast<size_t>(count_), Beam{});
  parents_.resize(static_cast<size_t>(count_));
  done_ = prompt_ >= options.max_length;
}

void Beams::advance(std::span<const float> scores) {
  const auto vocabulary = static_cast<int64_t>(scores.size()) / count_;
  const auto length = static_cast<int64_t>(running_[0].tokens.size());
  std::vector<float> add;
  for (const Beam& b : running_) add.push_back(b.score);
  const size_t keep = std::max<size_t>(2, 1 + options_->eos.size()) * static_cast<size_t>(count_);
  const std::vector<Candidate> best = best_of(scores, add, std::min(keep, scores.size()));

  const auto is_end = [&](int32_t token) {
    return std::find(options_->eos.begin(), options_->eos.end(), token) != options_->eos.end();
  };
  const auto extend = [&](const Candidate& c) {
    Beam b;
    b.tokens = running_[static_cast<size_t>(c.index / vocabulary)].tokens;
    b.tokens.push_back(static_cast<int32_t>(c.index % vocabulary));
    b.score = b.log_prob = c.score;
    b.ended = is_end(b.tokens.back());
    return b;
  };
  std::vector<Beam> ended = finished_;
  std::vector<Candidate> going = best;
  const bool full = options_->early_stopping == EarlyStopping::yes &&
                    std::all_of(finished_.begin(), finished_.end(), [](const Beam& b) { return b.finished; });
  bool all_hit = true;
  for (size_t rank = 0; rank < best.size(); rank++) {
    const Candidate& c = best[rank];
    if (length + 1 < options_->max_length && !is_end(static_cast<int32_t>(c.index % vocabulary))) {
      all_hit = false;
      continue;
    }
    going[rank].score += kLow;
    // Only the best `count` may end; the others are there to go on.
    if (rank >= static_cast<size_t>(count_) || full || !improvable_) continue;
    Beam b = extend(c);
    b.score = over_length(c.score, length + 1 - prompt_, options_->length_penalty);
    b.finished = true;
    ended.push_back(std::move(b));
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const Beam& a, const Beam& b) { return a.score > b.score; });
  ended.resize(static_cast<size_t>(count_));
  finished_ = std::move(ended);
  if (all_hit) {
    done_ = true;
    return;
  }
  std::stable_sort(going.begin(), going.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  std::vector<Beam> next;
  for (size_t k = 0; k < static_cast<size_t>(count_); k++) {
    const Candidate& c = going[std::min(k, going.size() - 1)];
    parents_[k] = c.index / vocabulary;
    next.push_back(extend(c));
  }
  running_ = std::move(next);

  const bool all_finished =
      std::all_of(finished_.begin(), finished_.end(), [](const Beam& b) { return b.finished; });
  const bool to_the_end = options_->early_stopping == EarlyStopping::never && options_->length_penalty > 0;
  const float possible =
      over_length(running_[0].score, (to_the_end ? options_->max_length : length + 1) - prompt_,
                  options_->length_penalty);
  float worst = finished_[0].score;
  for (const Beam& b : finished_) worst = std::min(worst, b.score);
  improvable_ = improvable_ && possible > (all_finished ? worst : kLow);
  done_ = !improvable_ || (all_finished && options_->early_stopping == EarlyStopping::yes);
}

std::vector<Hypothesis> Beams::results() const {
  std::vector<Hypothesis> out;
  for (const Beam& b : finished_) {
    if (!b.finished || static_cast<int64_t>(out.size()) == options_->results) break;
    Hypothesis h;
    h.tokens.assign(b.tokens.begin() + static_cast<std::ptrdiff_t>(prompt_), b.tokens.end());
    h.finished = b.ended;
    h.score = b.score;
    h.log_prob = b.log_prob;
    out.push_back(std::move(h));
  }
  return out;
}

}  // namespace cyb
