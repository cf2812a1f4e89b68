// SPDX-License-Identifier: Apache-2.0
// When each word of a window was said: from the weights with which chosen heads of the decoder look at the
// window's positions, by dynamic time warping.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tasks/speech_model.h"
#include "tasks/transcript.h"

namespace cyb {

struct TimedWord : SpokenWord {
  std::vector<int32_t> tokens;
};

// Texts of whole words with their tokens. Languages that write no spaces are cut at characters.
std::vector<TimedWord> split_words(const Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                                   bool spaces);
bool writes_spaces(const std::string& language);

// Times, relative to the window, of the words of `text` in a window of `frames` mel frames. `before` are the
// tokens that begin the transcript.
std::vector<TimedWord> find_words(SpeechModel& model, int window, const std::vector<int32_t>& before,
                                  const std::vector<int32_t>& text, int64_t frames, bool spaces);

// Where one of the window's positions lies, in seconds. Many comparisons of times are between equal ones,
// which come out as the reference's only where the times are the same quotients in binary.
constexpr double position_seconds(int64_t position) { return static_cast<double>(position) / 50; }

// The words of one window's segments: punctuation joined to its word, times rounded and held within reason.
// `segments` get their words, and their own times from them. `last` is the end of the last word before, and
// after the call that of these.
void put_words(std::vector<TimedWord> words, double offset, std::span<SpokenSegment* const> segments,
               int32_t end, double* last);
// The end of the last word, or of the last segment where none has words.
std::optional<double> last_end(std::span<SpokenSegment* const> segments);

// The path of least cost from the first to the last cell of a row-major matrix by steps right, down and both.
struct WarpPath {
  std::vector<int64_t> rows, columns;
};
WarpPath warp(std::span<const float> cost, int64_t rows, int64_t columns);
// In place, of odd width, mirrored at the ends.
void median_filter(std::span<float> row, int width);

}  // namespace cyb
