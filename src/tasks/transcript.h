// SPDX-License-Identifier: Apache-2.0
// What was said and when, and the forms in which it is written out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace cyb {

struct SpokenWord {
  std::string text;  // with the space before it
  double start = 0, end = 0;
  float probability = 0;
};

struct SpokenSegment {
  int64_t id = 0;
  double start = 0, end = 0;  // seconds
  std::string text;
  std::vector<int32_t> tokens;
  double temperature = 0, mean_log_probability = 0, compression = 0, no_speech = 0;
  std::vector<SpokenWord> words;
};

struct Transcript {
  std::string language;
  double language_probability = 1;
  double duration = 0;  // seconds
  std::vector<SpokenSegment> segments;
  struct Span {
    double start = 0, end = 0;
  };
  std::optional<std::vector<Span>> speech;  // what was heard at all, where a voice-activity model chose it

  std::string text() const;
};

// "00:00:11.000"; with a comma for SubRip.
std::string clock_text(double seconds, char decimal);
// One segment as a line or block of the format text, srt, vtt or tsv; words are marked in vtt.
std::string segment_text(const SpokenSegment& segment, const std::string& format);
// What stands before the first segment.
std::string format_header(const std::string& format);
std::string json_of(const Transcript& transcript, const std::string& file);

}  // namespace cyb
