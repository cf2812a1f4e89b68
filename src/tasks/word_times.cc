// SPDX-License-Identifier: Apache-2.0
#include "tasks/word_times.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cyb {
namespace {

constexpr int kMedianWidth = 7;
constexpr const char* kOpening = "\"'“¿([{-";
constexpr const char* kClosing = "\"'.。,，!！?？:：”)]}、";
constexpr const char* kSentenceEnds = ".。!！?？";

std::string trimmed(const std::string& s) {
  const size_t a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

// Whether `part`, which is not empty, stands in `all`.
bool within(const std::string& part, const char* all) {
  return !part.empty() && std::strstr(all, part.c_str());
}

bool is_punctuation(const std::string& s) { return within(s, "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"); }

// Log-free probabilities of the text's tokens, and their cost at each position: [tokens, positions].
struct Looks {
  std::vector<float> matrix;
  int64_t rows = 0, columns = 0;
  std::vector<float> probabilities;
};

// Each head's weights are taken over the window's own positions, made even over the tokens and smoothed;
// their mean over the heads is how much a token looks at a position.
Looks look(SpeechModel& model, int window, const std::vector<int32_t>& before,
           const std::vector<int32_t>& text, int64_t frames) {
  const SpeechTokens& special = model.tokens();
  std::vector<int32_t> all = before;
  all.push_back(special.no_timestamps);
  all.insert(all.end(), text.begin(), text.end());
  all.push_back(special.end);
  const auto count = static_cast<int64_t>(all.size());
  const auto first = static_cast<int64_t>(before.size());
  const int64_t positions = model.frames() / 2;
  Looks out;
  out.columns = std::clamp<int64_t>(frames / 2, 1, positions);
  out.rows = count - first - 1;  // from the last token before the text on
  const int windows[] = {window};
  model.place(windows);
  constexpr int64_t kChunk = 128;  // tokens a call: what the decoder gives for each is large
  std::vector<float> heads;        // [heads, tokens, columns]
  int64_t head_count = 0;
  Tensor weights;
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t n = std::min(kChunk, count - at);
    std::vector<SpeechModel::Place> wanted;
    for (int64_t i = at; i < at + n; i++)
      if (i >= first && i < first + static_cast<int64_t>(text.size())) wanted.push_back({0, i - at});
    const bool none = wanted.empty();
    if (none) wanted.push_back({0, 0});
    const float* logits = model.align(window, {all.data() + at, static_cast<size_t>(n)}, wanted, &weights);
    for (size_t i = 0; i < wanted.size() && !none; i++) {
      const float* row = logits + static_cast<int64_t>(i) * model.vocabulary();
      const float top = *std::max_element(row, row + special.end);
      double sum = 0;
      for (int32_t v = 0; v < special.end; v++) sum += std::exp(row[v] - top);
      const int32_t token = text[static_cast<size_t>(at + wanted[i].token - first)];
      out.probabilities.push_back(static_cast<float>(std::exp(row[token] - top) / sum));
    }
    head_count = weights.shape()[1];
    heads.resize(static_cast<size_t>(head_count * count * out.columns));
    for (int64_t h = 0; h < head_count; h++)
      for (int64_t t = 0; t < n; t++) {
        const float* from = weights.as<float>() + (h * n + t) * positions;
        float* to = heads.data() + (h * count + at + t) * out.columns;
        double sum = 0;
        for (int64_t j = 0; j < out.columns; j++) sum += static_cast<double>(from[j]);
        const auto scale = static_cast<float>(sum > 0 ? 1 / sum : 0);
        for (int64_t j = 0; j < out.columns; j++) to[j] = from[j] * scale;
      }
  }
  out.matrix.assign(static_cast<size_t>(out.rows * out.columns), 0);
  for (int64_t h = 0; h < head_count; h++) {
    float* w = heads.data() + h * count * out.columns;
    for (int64_t j = 0; j < out.columns; j++) {
      double mean = 0, square = 0;
      for (int64_t t = 0; t < count; t++) mean += static_cast<double>(w[t * out.columns + j]);
      mean /= static_cast<double>(count);
      for (int64_t t = 0; t < count; t++) {
        const double d = static_cast<double>(w[t * out.columns + j]) - mean;
        square += d * d;
      }
      const double deviation = std::sqrt(square / static_cast<double>(count));
      for (int64_t t = 0; t < count; t++) {
        float& x = w[t * out.columns + j];
        x = deviation > 0 ? static_cast<float>((static_cast<double>(x) - mean) / deviation) : 0.0f;
      }
    }
    for (int64_t t = 0; t < out.rows; t++) {
      const std::span<float> row(w + (first + t) * out.columns, static_cast<size_t>(out.columns));
      median_filter(row, kMedianWidth);
      for (int64_t j = 0; j < out.columns; j++)
        out.matrix[static_cast<size_t>(t * out.columns + j)] -= row[static_cast<size_t>(j)];
    }
  }
  for (float& x : out.matrix) x /= static_cast<float>(std::max<int64_t>(head_count, 1));
  return out;
}

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  const size_t n = v.size();
  return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

// Marks that open something join the word behind them, others the one before.
void join_punctuation(std::vector<TimedWord>& words) {
  const auto join = [](TimedWord& to, TimedWord& from, bool in_front) {
    to.text = in_front ? from.text + to.text : to.text + from.text;
    to.tokens.insert(in_front ? to.tokens.begin() : to.tokens.end(), from.tokens.begin(), from.tokens.end());
    from.text.clear();
    from.tokens.clear();
  };
  for (size_t i = words.size(), next = words.size(); i-- > 0;) {
    if (next < words.size() && words[i].text.starts_with(" ") && within(trimmed(words[i].text), kOpening))
      join(words[next], words[i], true);
    else
      next = i;
  }
  for (size_t i = 1, previous = 0; i < words.size(); i++) {
    if (!words[previous].text.ends_with(" ") && within(words[i].text, kClosing))
      join(words[previous], words[i], false);
    else
      previous = i;
  }
}

double to_hundredths(double v) { return std::nearbyint(v * 100) / 100; }

}  // namespace

bool writes_spaces(const std::string& language) {
  for (const char* without : {"zh", "ja", "th", "lo", "my", "yue"})
    if (language == without) return false;
  return true;
}

std::vector<TimedWord> split_words(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                                   bool spaces) {
  // Characters may be spread over several tokens.
  std::vector<TimedWord> pieces;
  StreamDecoder decoder(tokenizer);
  TimedWord piece;
  for (const int32_t id : tokens) {
    piece.tokens.push_back(id);
    piece.text += decoder.push(id);
    if (piece.text.empty()) continue;
    pieces.push_back(std::move(piece));
    piece = {};
  }
  if (!piece.tokens.empty()) {
    if (pieces.empty()) pieces.emplace_back();
    pieces.back().tokens.insert(pieces.back().tokens.end(), piece.tokens.begin(), piece.tokens.end());
  }
  if (!spaces) return pieces;
  std::vector<TimedWord> words;
  for (TimedWord& p : pieces) {
    if (words.empty() || p.text.starts_with(" ") || is_punctuation(trimmed(p.text))) {
      words.push_back(std::move(p));
      continue;
    }
    words.back().text += p.text;
    words.back().tokens.insert(words.back().tokens.end(), p.tokens.begin(), p.tokens.end());
  }
  return words;
}

void median_filter(std::span<float> row, int width) {
  const auto n = static_cast<int64_t>(row.size());
  const int64_t half = width / 2;
  if (n <= half) return;
  const std::vector<float> x(row.begin(), row.end());
  std::vector<float> window(static_cast<size_t>(width));
  for (int64_t i = 0; i < n; i++) {
    for (int64_t k = 0; k < width; k++) {
      int64_t at = std::abs(i + k - half);
      if (at >= n) at = 2 * (n - 1) - at;
      window[static_cast<size_t>(k)] = x[static_cast<size_t>(std::clamp<int64_t>(at, 0, n - 1))];
    }
    std::nth_element(window.begin(), window.begin() + half, window.end());
    row[static_cast<size_t>(i)] = window[static_cast<size_t>(half)];
  }
}

WarpPath warp(std::span<const float> cost, int64_t rows, int64_t columns) {
  enum Step : uint8_t { both, down, right };
  std::vector<uint8_t> step(static_cast<size_t>(rows * columns));
  const double far = std::numeric_limits<double>::infinity();
  // Sums of the row above and of this one, each with a cell before the first.
  std::vector<double> above(static_cast<size_t>(columns) + 1, far),
      here(static_cast<size_t>(columns) + 1, far);
  above[0] = 0;
  for (int64_t r = 0; r < rows; r++) {
    here[0] = far;
    for (int64_t c = 0; c < columns; c++) {
      const auto i = static_cast<size_t>(c);
      const double c0 = above[i], c1 = above[i + 1], c2 = here[i];
      Step s = right;
      double least = c2;
      if (c0 < c1 && c0 < c2) {
        s = both;
        least = c0;
      } else if (c1 < c0 && c1 < c2) {
        s = down;
        least = c1;
      }
      here[i + 1] = static_cast<double>(cost[static_cast<size_t>(r * columns + c)]) + least;
      step[static_cast<size_t>(r * columns + c)] = s;
    }
    std::swap(above, here);
  }
  WarpPath path;
  int64_t r = rows - 1, c = columns - 1;
  while (r >= 0 && c >= 0) {
    path.rows.push_back(r);
    path.columns.push_back(c);
    // Along the edges there is one way only.
    const uint8_t s = r == 0   ? static_cast<uint8_t>(right)
                      : c == 0 ? static_cast<uint8_t>(down)
                               : step[static_cast<size_t>(r * columns + c)];
    if (s != right) r--;
    if (s != down) c--;
  }
  std::reverse(path.rows.begin(), path.rows.end());
  std::reverse(path.columns.begin(), path.columns.end());
  return path;
}

std::vector<TimedWord> find_words(SpeechModel& model, int window, const std::vector<int32_t>& before,
                                  const std::vector<int32_t>& text, int64_t frames, bool spaces) {
  if (text.empty()) return {};
  const Looks looks = look(model, window, before, text, frames);
  const WarpPath path = warp(looks.matrix, looks.rows, looks.columns);
  // Where the path enters each row: the time at which that token begins. Row 0 is the token before the text.
  std::vector<double> begins(static_cast<size_t>(looks.rows), 0);
  for (size_t i = 0; i < path.rows.size(); i++)
    if (i == 0 || path.rows[i] != path.rows[i - 1])
      begins[static_cast<size_t>(path.rows[i])] = position_seconds(path.columns[i]);
  std::vector<TimedWord> words = split_words(model.tokenizer(), text, spaces);
  size_t at = 0;
  for (TimedWord& w : words) {
    const size_t end = std::min(at + w.tokens.size(), begins.size() - 1);
    w.start = begins[std::min(at, begins.size() - 1)];
    w.end = begins[end];
    double sum = 0;
    for (size_t i = at; i < end && i < looks.probabilities.size(); i++)
      sum += static_cast<double>(looks.probabilities[i]);
    w.probability = static_cast<float>(end > at ? sum / static_cast<double>(end - at) : 0);
    at = end;
  }
  return words;
}

void put_words(std::vector<TimedWord> words, double offset, std::span<SpokenSegment* const> segments,
               int32_t end, double* last) {
  std::vector<double> durations;
  for (const TimedWord& w : words)
    if (w.end != w.start) durations.push_back(w.end - w.start);
  const double usual = std::min(0.7, median(durations)), longest = usual * 2;
  // A pause at the end of a sentence belongs to no word.
  if (!durations.empty())
    for (size_t i = 1; i < words.size(); i++) {
      if (words[i].end - words[i].start <= longest) continue;
      if (within(words[i].text, kSentenceEnds))
        words[i].end = words[i].start + longest;
      else if (within(words[i - 1].text, kSentenceEnds))
        words[i].start = words[i].end - longest;
    }
  join_punctuation(words);

  double before = *last;
  size_t at = 0;
  for (SpokenSegment* segment : segments) {
    const auto is_text = [&](int32_t id) { return id < end; };
    const auto wanted =
        static_cast<size_t>(std::count_if(segment->tokens.begin(), segment->tokens.end(), is_text));
    std::vector<SpokenWord>& own = segment->words;
    for (size_t taken = 0; at < words.size() && taken < wanted; at++) {
      taken += words[at].tokens.size();
      if (words[at].text.empty()) continue;
      own.push_back(words[at]);
      own.back().start = to_hundredths(offset + words[at].start);
      own.back().end = to_hundredths(offset + words[at].end);
    }
    if (own.empty()) continue;
    // The first words behind a pause begin too early: the pause is part of them.
    SpokenWord& first = own.front();
    const bool long_pair = own.size() > 1 && own[1].end - first.start > longest * 2;
    if (first.end - before > usual * 4 && (first.end - first.start > longest || long_pair)) {
      if (own.size() > 1 && own[1].end - own[1].start > longest)
        first.end = own[1].start = std::max(own[1].end / 2, own[1].end - longest);
      first.start = std::max(0.0, first.end - longest);
    }
    // The segment's own times decide where the outer words are much longer than it.
    if (segment->start < first.end && segment->start - 0.5 > first.start)
      first.start = std::max(0.0, std::min(first.end - usual, segment->start));
    else
      segment->start = first.start;
    SpokenWord& final = own.back();
    if (segment->end > final.start && segment->end + 0.5 < final.end)
      final.end = std::max(final.start + usual, segment->end);
    else
      segment->end = final.end;
    before = segment->end;
  }
  if (const auto end_of_words = last_end(segments)) *last = *end_of_words;
}

std::optional<double> last_end(std::span<SpokenSegment* const> segments) {
  for (size_t i = segments.size(); i-- > 0;)
    if (!segments[i]->words.empty()) return segments[i]->words.back().end;
  return segments.empty() ? std::nullopt : std::optional(segments.back()->end);
}

}  // namespace cyb
