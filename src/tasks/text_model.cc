// SPDX-License-Identifier: Apache-2.0
#include <cyb/cyb.h>

#include <atomic>

#include "tasks/language_model.h"

namespace cyb {

struct TextModel::Impl {
  Impl(const std::string& path, const OpenOptions& options) : model(path, options) {}
  LanguageModel model;
  std::atomic<bool> stopped{false};

  TextResult generate(const std::vector<int32_t>& prompt, const TextOptions& o, const OnText& on_text) {
    GenerateOptions g;
    g.max_tokens = o.max_tokens;
    g.stop_ids = model.stop_ids();
    g.sampler = model.sampler();
    g.sampler.seed = o.seed;
    if (o.temperature) g.sampler.temperature = *o.temperature;
    if (o.top_k) g.sampler.top_k = *o.top_k;
    if (o.top_p) g.sampler.top_p = *o.top_p;
    if (o.min_p) g.sampler.min_p = *o.min_p;
    stopped = false;
    TextAnswer a = model.answer(prompt, g, o.stop, on_text, &stopped);
    const GenerateResult& result = a.result;
    TextResult r;
    r.text = std::move(a.text);
    r.finish_reason = result.finish_reason;
    r.prompt_tokens = result.prompt_tokens;
    r.generated_tokens = static_cast<int64_t>(result.tokens.size());
    return r;
  }
};

TextModel::TextModel(const std::string& path, const TextModelOptions& options) {
  OpenOptions o;
  o.threads = options.threads;
  o.context = options.context;
  o.exact = options.exact;
  impl_ = std::make_unique<Impl>(path, o);
}

TextModel::~TextModel() = default;
TextModel::TextModel(TextModel&&) noexcept = default;
TextModel& TextModel::operator=(TextModel&&) noexcept = default;

int64_t TextModel::context() const { return impl_->model.context(); }

std::vector<int32_t> TextModel::tokenize(std::string_view text) const {
  return impl_->model.text_ids(std::string(text), false);
}

TextResult TextModel::chat(const std::vector<ChatTurn>& turns, const TextOptions& options,
                           const OnText& on_text) {
  std::vector<Message> messages;
  for (const ChatTurn& turn : turns) {
    Message m;
    m.role = turn.role;
    m.content = turn.text;
    messages.push_back(std::move(m));
  }
  return impl_->generate(impl_->model.chat_ids(messages), options, on_text);
}

TextResult TextModel::complete(const std::string& text, const TextOptions& options, const OnText& on_text) {
  return impl_->generate(impl_->model.text_ids(text, false), options, on_text);
}

void TextModel::stop() { impl_->stopped = true; }

}  // namespace cyb
