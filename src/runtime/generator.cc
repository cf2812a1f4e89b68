// SPDX-License-Identifier: Apache-2.0
#include "runtime/generator.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/lookup_draft.h"

namespace cyb {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void fit(Tensor& t, const Shape& shape) {
  if (!(t.shape() == shape) || t.type() != DType::i32) t = Tensor(DType::i32, shape);
}

}  // namespace

Generator::Generator(Session& session, int64_t vocabulary) : session_(session), vocabulary_(vocabulary) {}

void Generator::forget() {
  session_.reset(0);
  held_.clear();
}

void Generator::step(std::span<const int32_t> tokens, std::span<const int32_t> rows) {
  const auto n = static_cast<int64_t>(tokens.size());
  fit(tokens_, {1, n});
  fit(positions_, {1, n});
  fit(lengths_, {1});
  fit(rows_, {static_cast<int64_t>(rows.size())});
  for (size_t i = 0; i < tokens.size(); i++) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary_)
      throw error(ErrorKind::Usage, "token {} is outside the vocabulary of {}", tokens[i], vocabulary_);
    tokens_.at<int32_t>(i) = tokens[i];
    positions_.at<int32_t>(i) = static_cast<int32_t>(held_.size() + i);
  }
  lengths_.at<int32_t>(0) = static_cast<int32_t>(n);
  for (size_t i = 0; i < rows.size(); i++) rows_.at<int32_t>(i) = rows[i];
  const Tensor* inputs[] = {&tokens_, &positions_, &lengths_, &rows_};
  session_.run("decode", inputs, out_);
  computed_ += n;
  held_.insert(held_.end(), tokens.begin(), tokens.end());
}

GenerateResult Generator::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const std::function<bool(int32_t)>& on_token,
                                   const std::atomic<bool>* cancel) {
  const int64_t context = session_.options().states.context;
  GenerateResult r;
  r.context = context;
  r.prompt_tokens = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) throw error(ErrorKind::Usage, "the prompt is empty").advise("give some text");
  if (r.prompt_tokens >= context)
    throw error(ErrorKind::Usage, "the prompt has {} tokens, the context holds {}", prompt.size(), context)
        .advise("shorten the prompt, or raise --ctx (the model and the memory set its limit)");
  const double start = now_ms();
  // The last token is always computed: its logits are wanted.
  size_t common = 0;
  while (common < held_.size() && common + 1 < prompt.size() && held_[common] == prompt[common]) common++;
  keep(common);
  r.reused_tokens = static_cast<int64_t>(held_.size());
  const bool done = extend_to(prompt, 1, cancel);
  r.prompt_ms = now_ms() - start;
  if (!done) {
    r.finish_reason = "cancelled";
    return r;
  }
  const double decode_start = now_ms();
  r = decode(prompt, options, std::move(r), on_token, cancel);
  r.decode_ms = now_ms() - decode_start;
  return r;
}

bool Generator::extend_to(std::span<const int32_t> sequence, size_t rows, const std::atomic<bool>* cancel) {
  const auto chunk = static_cast<size_t>(session_.options().states.chunk);
  const size_t first = sequence.size() - rows;  // the first whose logits are wanted
  while (held_.size() < sequence.size()) {
    if (cancel && cancel->load(std::memory_order_relaxed)) return false;
    const size_t at = held_.size();
    size_t n = std::min(chunk, sequence.size() - at);
    // The rows come from one call.
    if (at + n > first && at + n < sequence.size()) n = first - at;
    wanted_.clear();
    for (size_t i = std::max(first, at); i < at + n; i++) wanted_.push_back(static_cast<int32_t>(i - at));
    step(sequence.subspan(at, n), wanted_);
  }
  return true;
}

GenerateResult Generator::decode(std::span<const int32_t> prompt, const GenerateOptions& options,
                                 GenerateResult r, const std::function<bool(int32_t)>& on_token,
                                 const std::atomic<bool>* cancel) {
  const auto left = [&] {
    return options.max_tokens < 0 ? INT64_MAX : options.max_tokens - static_cast<int64_t>(r.tokens.size());
  };
  const auto chunk = static_cast<size_t>(session_.options().states.chunk);
  Sampler sampler(options.sampler);
  LookupDraft lookup;
  std::vector<int32_t> history(prompt.begin(), prompt.end());  // what is certain
  std::vector<int32_t> draft;                                  // what was tried after it
  double step_ms = 0;
  const auto finish = [&](const char* reason) {
    if (held_.size() > history.size()) keep(history.size());
    r.finish_reason = reason;
    return std::move(r);
  };
  for (size_t row = 0;;) {
    if (left() <= 0) return finish("length");
    const int64_t vocabulary = out_[0].shape()[1];
    float* logits = &out_[0].at<float>(row * static_cast<size_t>(vocabulary));
    const int32_t token = sampler.sample({logits, static_cast<size_t>(vocabulary)}, history);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), token) != options.stop_ids.end())
      return finish("stop");
    r.tokens.push_back(token);
    history.push_back(token);
    if (!on_token(token)) return finish("stop");
    if (cancel && cancel->load(std::memory_order_relaxed)) return finish("cancelled");
    if (static_cast<int64_t>(history.size()) >= r.context) return finish("length");
    if (left() <= 0) continue;
    if (row < draft.size() && draft[row] == token) {
      row++;  // the states and the logits go on from here
      continue;
    }
    if (!draft.empty()) lookup.tried(draft.size(), row, step_ms);
    r.accepted_tokens += static_cast<int64_t>(row);
    if (held_.size() >= history.size()) keep(history.size() - 1);
    const auto room = std::min(
        {left() - 1, r.context - static_cast<int64_t>(history.size()), static_cast<int64_t>(chunk) - 1});
    const auto proposed = options.lookup && room > 0 ? lookup.propose(history, static_cast<size_t>(room))
                                                     : std::span<const int32_t>();
    draft.assign(proposed.begin(), proposed.end());
    r.drafted_tokens += static_cast<int64_t>(draft.size());
    const size_t certain = history.size();
    history.insert(history.end(), draft.begin(), draft.end());
    const double start = now_ms();
    const bool done = extend_to(history, draft.size() + 1, cancel);
    step_ms = now_ms() - start;
    history.resize(certain);
    if (!done) return finish("cancelled");
    if (draft.empty()) lookup.plain_step(step_ms);
    row = 0;
  }
}

void Generator::keep(size_t n) {
  held_.resize(static_cast<size_t>(session_.truncate(0, static_cast<int64_t>(n))));
}

void Generator::logits(std::span<const int32_t> tokens, const std::function<bool(int64_t)>& wanted,
                       const std::function<void(int64_t, std::span<const float>)>& on_row,
                       int64_t chunk_size) {
  const int64_t context = session_.options().states.context;
  if (static_cast<int64_t>(tokens.size()) > context)
    throw error(ErrorKind::Usage, "the text has {} tokens, the context holds {}", tokens.size(), context);
  forget();
  const auto chunk = static_cast<size_t>(chunk_size > 0 ? chunk_size : session_.options().states.chunk);
  for (size_t at = 0; at < tokens.size(); at += chunk) {
    const size_t n = std::min(chunk, tokens.size() - at);
    std::vector<int32_t> rows;
    for (size_t i = 0; i < n; i++)
      if (wanted(static_cast<int64_t>(at + i))) rows.push_back(static_cast<int32_t>(i));
    step(tokens.subspan(at, n), rows);
    for (size_t i = 0; i < rows.size(); i++)
      on_row(static_cast<int64_t>(at) + rows[i],
             {out_[0].as<float>() + static_cast<int64_t>(i) * out_[0].shape()[1],
              static_cast<size_t>(out_[0].shape()[1])});
  }
}

}  // namespace cyb
