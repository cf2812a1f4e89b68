// SPDX-License-Identifier: Apache-2.0
#include "tasks/transcript.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cyb {
namespace {

std::string trimmed(const std::string& s) {
  const size_t a = s.find_first_not_of(' '), b = s.find_last_not_of(' ');
  return a == std::string::npos ? "" : s.substr(a, b - a + 1);
}

// An arrow or a line end would end a cue.
std::string cue(const std::string& s) {
  std::string out;
  for (const char c : trimmed(s)) out += c == '\n' || c == '\r' ? ' ' : c;
  for (size_t at; (at = out.find("-->")) != std::string::npos;) out.replace(at, 3, "->");
  return out;
}

double rounded(double v, int digits) {
  const double f = std::pow(10.0, digits);
  return std::round(v * f) / f;
}

}  // namespace

std::string Transcript::text() const {
  std::string out;
  for (const SpokenSegment& s : segments) out += s.text;
  return trimmed(out);
}

std::string clock_text(double seconds, char decimal) {
  const auto ms = static_cast<int64_t>(std::llround(std::max(seconds, 0.0) * 1000));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", ms / 3600000, ms / 60000 % 60, ms / 1000 % 60, decimal,
                     ms % 1000);
}

std::string format_header(const std::string& format) {
  if (format == "vtt") return "WEBVTT\n\n";
  if (format == "tsv") return "start\tend\ttext\n";
  return "";
}

std::string segment_text(const SpokenSegment& s, const std::string& format) {
  if (format == "srt")
    return fmt::format("{}\n{} --> {}\n{}\n\n", s.id, clock_text(s.start, ','), clock_text(s.end, ','),
                       cue(s.text));
  if (format == "vtt") {
    std::string text = cue(s.text);
    if (!s.words.empty()) {
      text.clear();
      for (const SpokenWord& w : s.words)
        text += fmt::format("{}<{}>{}", text.empty() ? "" : " ", clock_text(w.start, '.'), cue(w.text));
    }
    return fmt::format("{} --> {}\n{}\n\n", clock_text(s.start, '.'), clock_text(s.end, '.'), text);
  }
  if (format == "tsv") {
    std::string text = cue(s.text);
    for (char& c : text)
      if (c == '\t') c = ' ';
    return fmt::format("{}\t{}\t{}\n", std::llround(s.start * 1000), std::llround(s.end * 1000), text);
  }
  return trimmed(s.text) + "\n";
}

std::string json_of(const Transcript& t, const std::string& file) {
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  for (const SpokenSegment& s : t.segments) {
    nlohmann::ordered_json j{{"id", s.id},
                             {"start", rounded(s.start, 3)},
                             {"end", rounded(s.end, 3)},
                             {"text", s.text},
                             {"tokens", s.tokens},
                             {"temperature", s.temperature},
                             {"avg_logprob", rounded(s.mean_log_probability, 6)},
                             {"compression_ratio", rounded(s.compression, 6)},
                             {"no_speech_prob", rounded(s.no_speech, 6)}};
    if (!s.words.empty()) {
      j["words"] = nlohmann::ordered_json::array();
      for (const SpokenWord& w : s.words)
        j["words"].push_back({{"word", w.text},
                              {"start", rounded(w.start, 3)},
                              {"end", rounded(w.end, 3)},
                              {"probability", rounded(static_cast<double>(w.probability), 6)}});
    }
    segments.push_back(std::move(j));
  }
  nlohmann::ordered_json j{{"file", file},
                           {"language", t.language},
                           {"language_probability", rounded(t.language_probability, 6)},
                           {"duration", rounded(t.duration, 3)},
                           {"text", t.text()},
                           {"segments", segments}};
  if (t.speech) {
    j["speech"] = nlohmann::ordered_json::array();
    for (const Transcript::Span& s : *t.speech)
      j["speech"].push_back({{"start", rounded(s.start, 3)}, {"end", rounded(s.end, 3)}});
  }
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace cyb
