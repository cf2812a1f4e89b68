// SPDX-License-Identifier: Apache-2.0
#include "tasks/question_answerer.h"

#include <algorithm>
#include <cmath>

#include "text/unicode.h"
#include "text/utf8.h"

namespace cyb {
namespace {

// The context's tokens with the bytes of the word that each belongs to.
struct Words {
  std::vector<int32_t> ids;
  std::vector<size_t> begin, end;
};

Words words_of(const Tokenizer& t, std::string_view context) {
  Tokenizer::Placed placed = t.encode_placed(context, {.parse_special = false, .add_special = false});
  Words out;
  out.ids = std::move(placed.ids);
  const auto& places = placed.places;
  for (size_t i = 0, next = 0; i < places.size(); i = next) {
    while (next < places.size() && places[next].word == places[i].word) ++next;
    out.begin.resize(next, places[i].begin);
    out.end.resize(next, places[next - 1].end);
  }
  return out;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

}  // namespace

QuestionAnswerer::QuestionAnswerer(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "span") {}

std::vector<QuestionAnswerer::Span> QuestionAnswerer::answer(const std::string& question,
                                                             const std::string& given, const AnswerOptions& o,
                                                             int64_t batch) {
  const std::string context = utf8_valid(given) ? given : utf8_sanitize(given);
  const Words words = words_of(encoder_.tokenizer(), context);
  std::vector<int32_t> asked =
      encoder_.tokenizer().encode(question, {.parse_special = false, .add_special = false});
  const auto window = static_cast<size_t>(std::min(o.window, encoder_.max_tokens()));
  const size_t around = encoder_.tokens_around_pair();
  const size_t stride = std::min(static_cast<size_t>(o.stride), window / 2);
  if (asked.size() + around + stride + 1 > window)
    throw error(ErrorKind::Usage, "the question has {} tokens: {} at once leave no room for a text",
                asked.size(), window)
        .advise("ask a shorter question, or raise --window (at most {})", encoder_.max_tokens());
  const size_t room = window - around - asked.size();

  struct Window {
    size_t first, count;
  };
  std::vector<Window> windows;
  std::vector<TextEncoder::Input> inputs;
  size_t place = 0;  // of the first context token in the input
  for (size_t at = 0;; at += room - stride) {
    const size_t count = std::min(room, words.ids.size() - at);
    windows.push_back({at, count});
    inputs.push_back(encoder_.pair_of(asked, std::span(words.ids).subspan(at, count), &place));
    if (at + count >= words.ids.size()) break;
  }

  std::vector<std::vector<float>> logits(inputs.size());
  encoder_.run(inputs, batch,
               [&](size_t i, std::span<const float> v) { logits[i].assign(v.begin(), v.end()); });

  std::vector<Span> answers;
  double none = 1e6;
  const auto wanted = static_cast<size_t>(o.top) * 2 + 10;
  for (size_t w = 0; w < windows.size(); w++) {
    // Probabilities of where it begins and ends, over the context and the first token, which stands for none.
    const size_t count = windows[w].count;
    std::vector<float> p[2];
    float first[2];
    for (size_t k = 0; k < 2; k++) {
      float most = logits[w][k];
      for (size_t t = 0; t < count; t++) most = std::max(most, logits[w][(place + t) * 2 + k]);
      double sum = first[k] = std::exp(logits[w][k] - most);
      for (size_t t = 0; t < count; t++) {
        p[k].push_back(std::exp(logits[w][(place + t) * 2 + k] - most));
        sum += static_cast<double>(p[k].back());
      }
      for (float& v : p[k]) v = static_cast<float>(static_cast<double>(v) / sum);
      first[k] = static_cast<float>(static_cast<double>(first[k]) / sum);
    }
    none = std::min(none, static_cast<double>(first[0] * first[1]));
    struct Candidate {
      float score;
      size_t begin, end;
    };
    std::vector<Candidate> all;
    for (size_t b = 0; b < count; b++)
      for (size_t e = b; e < std::min(count, b + static_cast<size_t>(o.longest)); e++)
        all.push_back({p[0][b] * p[1][e], b, e});
    const auto kept = static_cast<std::ptrdiff_t>(std::min(wanted, all.size()));
    std::partial_sort(all.begin(), all.begin() + kept, all.end(), [](const Candidate& x, const Candidate& y) {
      return x.score != y.score ? x.score > y.score : x.begin != y.begin ? x.begin < y.begin : x.end < y.end;
    });
    all.resize(static_cast<size_t>(kept));
    for (const Candidate& c : all) {
      size_t from = words.begin[windows[w].first + c.begin];
      size_t to = std::max(from, words.end[windows[w].first + c.end]);
      strip_left(context, &from, to);
      strip_right(context, from, &to);
      const std::string text = context.substr(from, to - from);
      const auto same = std::find_if(answers.begin(), answers.end(),
                                     [&](const Span& s) { return lower(s.text) == lower(text); });
      if (same != answers.end()) {
        same->score += static_cast<double>(c.score);
        continue;
      }
      const int64_t begin = utf8_count(std::string_view(context).substr(0, from));
      answers.push_back({text, static_cast<double>(c.score), begin, begin + utf8_count(text)});
    }
  }
  if (o.allow_none) answers.push_back({"", none, 0, 0});
  std::stable_sort(answers.begin(), answers.end(),
                   [](const Span& a, const Span& b) { return a.score > b.score; });
  if (answers.size() > static_cast<size_t>(o.top)) answers.resize(static_cast<size_t>(o.top));
  return answers;
}

}  // namespace cyb
