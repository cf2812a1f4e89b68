// SPDX-License-Identifier: Apache-2.0
#include "tasks/text_heads.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "text/utf8.h"

namespace cyb {
namespace {

std::vector<float> softmax(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  std::vector<double> e;
  double sum = 0;
  for (const float x : logits) {
    e.push_back(std::exp(static_cast<double>(x) - static_cast<double>(most)));
    sum += e.back();
  }
  std::vector<float> out;
  for (const double x : e) out.push_back(static_cast<float>(x / sum));
  return out;
}

float sigmoid(float x) { return static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x)))); }

std::vector<std::string> labels_of(const Config& c) {
  std::vector<std::string> labels = c.texts("architecture.labels");
  if (labels.empty()) throw c.invalid("architecture.labels", "there are no labels");
  return labels;
}

// "B-PER" → 'B', "PER"; what has no such beginning goes on.
std::pair<char, std::string> parts_of(const std::string& label) {
  if (label.starts_with("B-") || label.starts_with("I-")) return {label[0], label.substr(2)};
  return {'I', label};
}

}  // namespace

TextClassifier::TextClassifier(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "classify"), labels_(labels_of(encoder_.config())) {
  each_alone_ = labels_.size() == 1 ||
                encoder_.config().text_or("architecture.problem_type", "") == "multi_label_classification";
}

std::vector<std::vector<ScoredLabel>> TextClassifier::classify(std::span<const std::string> texts,
                                                               int64_t batch) {
  std::vector<TextEncoder::Input> inputs;
  for (const std::string& text : texts) inputs.push_back(encoder_.tokens(text));
  std::vector<std::vector<ScoredLabel>> out(texts.size());
  encoder_.run(inputs, batch, [&](size_t i, std::span<const float> logits) {
    std::vector<float> scores;
    if (each_alone_)
      for (const float x : logits) scores.push_back(sigmoid(x));
    else
      scores = softmax(logits);
    for (size_t k = 0; k < scores.size(); k++) out[i].push_back({labels_[k], scores[k]});
    std::stable_sort(out[i].begin(), out[i].end(),
                     [](const ScoredLabel& a, const ScoredLabel& b) { return a.score > b.score; });
  });
  return out;
}

EntityTagger::EntityTagger(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "tag"), labels_(labels_of(encoder_.config())) {}

std::vector<std::vector<EntityTagger::Entity>> EntityTagger::tag(std::span<const std::string> given,
                                                                 int64_t batch, Aggregation aggregation) {
  std::vector<TextEncoder::Input> inputs;
  std::vector<std::string> texts(given.begin(), given.end());
  std::vector<std::vector<Tokenizer::Place>> places(texts.size());
  for (size_t i = 0; i < texts.size(); i++) {
    if (!utf8_valid(texts[i])) texts[i] = utf8_sanitize(texts[i]);
    inputs.push_back(encoder_.tokens(texts[i], &places[i]));
  }
  std::vector<std::vector<Entity>> out(texts.size());
  encoder_.run(inputs, batch, [&](size_t i, std::span<const float> logits) {
    const std::vector<int32_t>& ids = inputs[i].ids;
    const size_t kinds = labels_.size();
    std::vector<Entity> entities;
    bool open = false;
    for (size_t t = 0, next = 0; t < ids.size(); t = next) {
      next = t + 1;
      const bool unknown = encoder_.tokenizer().unk() == ids[t];
      if (places[i][t].word < 0 || (encoder_.tokenizer().is_special(ids[t]) && !unknown)) {  // [CLS], [SEP]
        open = false;
        continue;
      }
      std::vector<float> scores = softmax(logits.subspan(t * kinds, kinds));
      if (aggregation != Aggregation::simple) {
        while (next < ids.size() && places[i][next].word == places[i][t].word) ++next;
        float most = *std::max_element(scores.begin(), scores.end());
        for (size_t k = t + 1; k < next && aggregation != Aggregation::first; k++) {
          const std::vector<float> other = softmax(logits.subspan(k * kinds, kinds));
          const float surest = *std::max_element(other.begin(), other.end());
          if (aggregation == Aggregation::average)
            for (size_t c = 0; c < kinds; c++) scores[c] += other[c];
          else if (surest > most)
            scores = other, most = surest;
        }
        if (aggregation == Aggregation::average)
          for (float& score : scores) score /= static_cast<float>(next - t);
      }
      const auto best = static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
      const auto [begins, label] = parts_of(labels_[best]);
      if (!open || begins == 'B' || entities.back().label != label)
        entities.push_back({.label = label,
                            .text = "",
                            .begin = static_cast<int64_t>(places[i][t].begin),
                            .first = static_cast<int64_t>(t)});
      Entity& e = entities.back();
      e.score += scores[best];
      e.parts++;
      e.count = static_cast<int64_t>(next) - e.first;
      e.end = static_cast<int64_t>(places[i][next - 1].end);
      open = true;
    }
    for (Entity& e : entities) {
      if (e.label == "O") continue;
      e.score /= static_cast<float>(e.parts);
      const auto from = static_cast<size_t>(e.begin), to = static_cast<size_t>(std::max(e.begin, e.end));
      e.text = texts[i].substr(from, to - from);
      e.begin = utf8_count(std::string_view(texts[i]).substr(0, from));
      e.end = e.begin + utf8_count(e.text);
      out[i].push_back(std::move(e));
    }
  });
  return out;
}

MaskFiller::MaskFiller(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "fill") {
  if (!encoder_.tokenizer().mask())
    throw error(ErrorKind::Tokenizer, "'{}': its tokenizer has no mask token", path)
        .advise("import the model with its tokenizer_config.json");
  mask_ = *encoder_.tokenizer().mask();
}

std::string MaskFiller::mask() const { return std::string(encoder_.tokenizer().token_text(mask_)); }

std::vector<std::vector<MaskFiller::Word>> MaskFiller::fill(const std::string& text, int64_t count) {
  const TextEncoder::Input input = encoder_.tokens(text, true);
  std::vector<int32_t> positions;
  for (size_t t = 0; t < input.ids.size(); t++)
    if (input.ids[t] == mask_) positions.push_back(static_cast<int32_t>(t));
  if (positions.empty())
    throw error(ErrorKind::Usage, "the text has no {}", mask())
        .advise("write {} where a word is wanted", mask());
  std::vector<std::vector<Word>> out(positions.size());
  encoder_.fill(input, positions, [&](size_t i, std::span<const float> logits) {
    const std::vector<float> scores = softmax(logits);
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    const auto wanted =
        std::min(static_cast<std::ptrdiff_t>(count), static_cast<std::ptrdiff_t>(order.size()));
    std::partial_sort(order.begin(), order.begin() + wanted, order.end(), [&](int32_t a, int32_t b) {
      const float x = scores[static_cast<size_t>(a)], y = scores[static_cast<size_t>(b)];
      return x > y || (x == y && a < b);
    });
    for (std::ptrdiff_t k = 0; k < wanted; k++) {
      const int32_t id = order[static_cast<size_t>(k)];
      out[i].push_back({id, encoder_.tokenizer().decode({&id, 1}), scores[static_cast<size_t>(id)]});
    }
  });
  return out;
}

Reranker::Reranker(const std::string& path, const OpenOptions& options)
    : encoder_(path, options, "classify") {
  const Config& c = encoder_.config();
  if (labels_of(c).size() != 1)
    throw error(ErrorKind::UnsupportedModel, "'{}' classifies texts; it does not score pairs of them", path)
        .advise("use cyb-llm classify, or a cross-encoder with one score");
  squash_ = c.text_or("architecture.score_activation", "sigmoid") == "sigmoid";
}

std::vector<float> Reranker::score(const std::string& query, std::span<const std::string> documents,
                                   int64_t batch) {
  std::vector<TextEncoder::Input> inputs;
  for (const std::string& d : documents) inputs.push_back(encoder_.pair_tokens(query, d));
  std::vector<float> out(documents.size());
  encoder_.run(inputs, batch, [&](size_t i, std::span<const float> logits) {
    out[i] = squash_ ? sigmoid(logits[0]) : logits[0];
  });
  return out;
}

}  // namespace cyb
