// SPDX-License-Identifier: Apache-2.0
#include "tasks/seq2seq.h"

#include <algorithm>
#include <cmath>

namespace cyb {
namespace {

void fit(Tensor& t, const Shape& shape) {
  if (!(t.shape() == shape) || t.type() != DType::i32) t = Tensor(DType::i32, shape);
}

std::span<float> row_of(Tensor& t, size_t row) {
  const auto width = static_cast<size_t>(t.shape()[1]);
  return {&t.at<float>(row * width), width};
}

bool raised(const std::atomic<bool>* cancel) { return cancel && cancel->load(std::memory_order_relaxed); }

}  // namespace

Seq2Seq::Seq2Seq(Session& session, int64_t vocabulary)
    : session_(session), vocabulary_(vocabulary), held_(static_cast<size_t>(slots()), 0) {
  for (const char* graph : {"cross", "decode"})
    if (!session.has(graph))
      throw error(ErrorKind::UnsupportedModel, "the program has no graph '{}': it is no encoder-decoder",
                  graph)
          .advise("cyb-llm show MODEL tells what the model is for");
}

void Seq2Seq::attend(const Tensor& hidden, std::span<const int32_t> lengths) {
  if (hidden.shape().rank() != 3 || hidden.shape()[0] != static_cast<int64_t>(lengths.size()) ||
      hidden.shape()[0] > slots())
    throw error(ErrorKind::Usage, "{} inputs for {} slots", lengths.size(), slots());
  for (int64_t slot = 0; slot < slots(); slot++) session_.reset(static_cast<int>(slot));
  std::fill(held_.begin(), held_.end(), 0);
  inputs_ = hidden.shape()[0];
  const Tensor counts = Tensor::i32({inputs_}, {lengths.begin(), lengths.end()});
  const Tensor* values[] = {&hidden, &counts};
  std::vector<Tensor> none;
  session_.run("cross", values, none);
}

Tensor& Seq2Seq::step(std::span<const std::vector<int32_t>> tokens, bool all) {
  const auto batch = static_cast<int64_t>(tokens.size());
  if (batch < 1 || batch > slots())
    throw error(ErrorKind::Usage, "{} sequences for {} slots", batch, slots());
  size_t longest = 1, rows = 0;
  for (const auto& t : tokens) {
    longest = std::max(longest, t.size());
    rows += all ? t.size() : !t.empty();
  }
  const auto time = static_cast<int64_t>(longest);
  fit(tokens_, {batch, time});
  fit(positions_, {batch, time});
  fit(lengths_, {batch});
  fit(rows_, {static_cast<int64_t>(rows)});
  size_t row = 0;
  for (size_t b = 0; b < tokens.size(); b++) {
    const std::vector<int32_t>& own = tokens[b];
    for (size_t t = 0; t < longest; t++) {
      const size_t at = b * longest + t;
      const int32_t id = t < own.size() ? own[t] : 0;
      if (id < 0 || id >= vocabulary_)
        throw error(ErrorKind::Usage, "token {} is outside the vocabulary of {}", id, vocabulary_);
      tokens_.at<int32_t>(at) = id;
      positions_.at<int32_t>(at) =
          t < own.size() ? static_cast<int32_t>(held_[b] + static_cast<int64_t>(t)) : 0;
      if (t < own.size() && (all || t + 1 == own.size())) rows_.at<int32_t>(row++) = static_cast<int32_t>(at);
    }
    lengths_.at<int32_t>(b) = static_cast<int32_t>(own.size());
    held_[b] += static_cast<int64_t>(own.size());
  }
  const Tensor* values[] = {&tokens_, &positions_, &lengths_, &rows_};
  session_.run("decode", values, out_);
  return out_[0];
}

void Seq2Seq::select(std::span<const int32_t> index) {
  std::vector<int32_t> whole(static_cast<size_t>(slots()));
  std::vector<int64_t> held(held_.size());
  for (size_t b = 0; b < whole.size(); b++) {
    whole[b] = b < index.size() ? index[b] : static_cast<int32_t>(b);
    if (whole[b] < 0 || whole[b] >= slots()) throw error(ErrorKind::Usage, "no slot {}", whole[b]);
    held[b] = held_[static_cast<size_t>(whole[b])];
  }
  session_.select(whole);
  held_ = std::move(held);
}

std::vector<std::vector<Hypothesis>> Seq2Seq::search(std::span<const std::vector<int32_t>> prompts,
                                                     const SearchOptions& options, const LogitsHook& hook,
                                                     const std::atomic<bool>* cancel) {
  if (static_cast<int64_t>(prompts.size()) != inputs_)
    throw error(ErrorKind::Usage, "{} prompts for {} inputs", prompts.size(), inputs_);
  if (options.beams < 1 || inputs_ * options.beams > slots())
    throw error(ErrorKind::Usage, "{} inputs with {} beams each need more than {} slots", inputs_,
                options.beams, slots());
  for (const auto& p : prompts)
    if (p.empty() || static_cast<int64_t>(p.size()) >= options.max_length)
      throw error(ErrorKind::Usage, "a prompt of {} tokens, the result may have {} with it", p.size(),
                  options.max_length);
  return options.beams == 1 ? search_plain(prompts, options, hook, cancel)
                            : search_beams(prompts, options, hook, cancel);
}

std::vector<std::vector<Hypothesis>> Seq2Seq::search_plain(std::span<const std::vector<int32_t>> prompts,
                                                           const SearchOptions& options,
                                                           const LogitsHook& hook,
                                                           const std::atomic<bool>* cancel) {
  struct Row {
    size_t input;
    std::vector<int32_t> tokens;
  };
  std::vector<Row> live;
  std::vector<std::vector<int32_t>> next(prompts.begin(), prompts.end());
  std::vector<std::vector<Hypothesis>> out(prompts.size(), std::vector<Hypothesis>(1));
  std::vector<Sampler> samplers;
  for (size_t i = 0; i < prompts.size(); i++) {
    live.push_back({i, prompts[i]});
    if (options.sampler) {
      SamplerSettings s = *options.sampler;
      s.seed += i;
      samplers.emplace_back(s);
    }
  }
  const auto room = [&](const Row& r) { return static_cast<int64_t>(r.tokens.size()) < options.max_length; };
  std::vector<float> own;
  size_t running = live.size();
  while (running > 0 && !raised(cancel)) {
    Tensor& logits = step(next);
    size_t row = 0;
    for (size_t b = 0; b < live.size(); b++) {
      if (next[b].empty()) continue;
      Row& r = live[b];
      Hypothesis& h = out[r.input][0];
      const std::span<float> scores = row_of(logits, row++);
      const SearchStep at{r.input, r.tokens, prompts[r.input].size()};
      apply_rules(options, at, scores);
      if (hook) hook(at, scores);
      own.assign(scores.begin(), scores.end());
      log_softmax(own);
      int32_t token = static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      if (options.sampler) token = samplers[r.input].sample(scores, r.tokens);
      h.log_prob += own[static_cast<size_t>(token)];
      h.score = h.log_prob;
      h.tokens.push_back(token);
      r.tokens.push_back(token);
      h.finished = std::find(options.eos.begin(), options.eos.end(), token) != options.eos.end();
      next[b] = {token};
      if (h.finished || !room(r)) {
        next[b].clear();
        running--;
      }
    }
    // Finished sequences cost time as long as they are there; shapes change seldom.
    if (running > 0 && running * 2 <= live.size()) {
      std::vector<int32_t> index;
      std::vector<Row> kept;
      std::vector<std::vector<int32_t>> kept_next;
      for (size_t b = 0; b < live.size(); b++)
        if (!next[b].empty()) {
          index.push_back(static_cast<int32_t>(b));
          kept.push_back(std::move(live[b]));
          kept_next.push_back(std::move(next[b]));
        }
      select(index);
      live = std::move(kept);
      next = std::move(kept_next);
    }
  }
  return out;
}

std::vector<std::vector<Hypothesis>> Seq2Seq::search_beams(std::span<const std::vector<int32_t>> prompts,
                                                           const SearchOptions& options,
                                                           const LogitsHook& hook,
                                                           const std::atomic<bool>* cancel) {
  const int64_t count = options.beams;
  std::vector<std::vector<Hypothesis>> out(prompts.size());
  struct Item {
    size_t input;
    Beams beams;
  };
  std::vector<Item> live;
  std::vector<int32_t> index;
  std::vector<std::vector<int32_t>> next;
  for (size_t i = 0; i < prompts.size(); i++) {
    live.push_back({i, Beams(options, prompts[i])});
    for (int64_t k = 0; k < count; k++) {
      index.push_back(static_cast<int32_t>(i));
      next.push_back(prompts[i]);
    }
  }
  select(index);
  while (!live.empty() && !raised(cancel)) {
    Tensor& logits = step(next);
    index.clear();
    next.clear();
    std::vector<Item> kept;
    for (size_t i = 0; i < live.size(); i++) {
      Item& item = live[i];
      const size_t first = i * static_cast<size_t>(count);
      for (int64_t k = 0; k < count; k++) {
        const std::span<float> scores = row_of(logits, first + static_cast<size_t>(k));
        const SearchStep at{item.input, item.beams.tokens(k), prompts[item.input].size()};
        log_softmax(scores);
        apply_rules(options, at, scores);
        if (hook) hook(at, scores);
      }
      item.beams.advance({logits.as<float>() + static_cast<int64_t>(first) * vocabulary_,
                          static_cast<size_t>(count * vocabulary_)});
      if (item.beams.done()) {
        out[item.input] = item.beams.results();
        continue;
      }
      for (int64_t k = 0; k < count; k++) {
        index.push_back(static_cast<int32_t>(first) + static_cast<int32_t>(item.beams.parent(k)));
        next.push_back({item.beams.tokens(k).back()});
      }
      kept.push_back(std::move(item));
    }
    live = std::move(kept);
    if (!live.empty()) select(index);
  }
  return out;
}

}  // namespace cyb
