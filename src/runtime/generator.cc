// SPDX-License-Identifier: Apache-2.0
#include "runtime/generator.h"

#include <algorithm>
#include <chrono>

namespace cyb {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
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
  held_.insert(held_.end(), tokens.begin(), tokens.end());
}

GenerateResult Generator::generate(std::span<const int32_t> prompt, const GenerateOptions& options,
                                   const std::function<bool(int32_t)>& on_token, const std::atomic<bool>* cancel) {
  const int64_t context = session_.options().states.context;
  GenerateResult r;
  r.context = context;
  r.prompt_tokens = static_cast<int64_t>(prompt.size());
  if (prompt.empty()) throw error(ErrorKind::Usage, "the prompt is empty").advise("give some text");
  if (r.prompt_tokens >= context)
    throw error(ErrorKind::Usage, "the prompt has {} tokens, the context holds {}", prompt.size(), context)
        .advise("shorten the prompt, or raise --ctx (the model and the memory set its limit)");
  auto cancelled = [&] { return cancel && cancel->load(std::memory_order_relaxed); };

  const double start = now_ms();
  // The last token is always computed: its logits are wanted.
  size_t common = 0;
  while (common < held_.size() && common + 1 < prompt.size() && held_[common] == prompt[common]) common++;
  common = static_cast<size_t>(session_.truncate(0, static_cast<int64_t>(common)));
  held_.resize(common);
  r.reused_tokens = static_cast<int64_t>(common);
  const auto chunk = static_cast<size_t>(session_.options().states.chunk);
  for (size_t at = common; at < prompt.size(); at += chunk) {
    if (cancelled()) {
      r.finish_reason = "cancelled";
      r.prompt_ms = now_ms() - start;
      return r;
    }
    const size_t n = std::min(chunk, prompt.size() - at);
    // Only the last chunk's last row is needed; others ask for none.
    const int32_t last = static_cast<int32_t>(n) - 1;
    const bool wanted = at + n == prompt.size();
    step(prompt.subspan(at, n), wanted ? std::span<const int32_t>(&last, 1) : std::span<const int32_t>());
  }
  r.prompt_ms = now_ms() - start;

  const double decode_start = now_ms();
  Sampler sampler(options.sampler);
  std::vector<int32_t> history(prompt.begin(), prompt.end());
  const int32_t row = 0;
  for (;;) {
    if (options.max_tokens >= 0 && static_cast<int64_t>(r.tokens.size()) >= options.max_tokens) {
      r.finish_reason = "length";
      break;
    }
    const int32_t token = sampler.sample({&out_[0].at<float>(0), static_cast<size_t>(out_[0].elements())}, history);
    if (std::find(options.stop_ids.begin(), options.stop_ids.end(), token) != options.stop_ids.end()) {
      r.finish_reason = "stop";
      break;
    }
    r.tokens.push_back(token);
    history.push_back(token);
    if (!on_token(token)) {
      r.finish_reason = "stop";
      break;
    }
    if (cancelled()) {
      r.finish_reason = "cancelled";
      break;
    }
    if (static_cast<int64_t>(held_.size()) + 1 >= context) {
      r.finish_reason = "length";
      break;
    }
    if (options.max_tokens >= 0 && static_cast<int64_t>(r.tokens.size()) >= options.max_tokens) continue;
    step({&token, 1}, {&row, 1});
  }
  r.decode_ms = now_ms() - decode_start;
  return r;
}

void Generator::logits(std::span<const int32_t> tokens, const std::function<bool(int64_t)>& wanted,
                       const std::function<void(int64_t, std::span<const float>)>& on_row, int64_t chunk_size) {
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
             {out_[0].as<float>() + static_cast<int64_t>(i) * out_[0].shape()[1], static_cast<size_t>(out_[0].shape()[1])});
  }
}

}  // namespace cyb
