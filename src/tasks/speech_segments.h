// SPDX-License-Identifier: Apache-2.0
// Probabilities of speech, one a window, to segments.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

namespace cyb {

// As in Silero's get_speech_timestamps, with its defaults. Times in seconds.
struct VoiceSettings {
  double threshold = 0.5;               // speech begins at this probability
  std::optional<double> low_threshold;  // and may end below this one; absent: 0.15 less, at least 0.01
  double min_speech = 0.25;             // shorter segments are dropped
  double max_speech =
      std::numeric_limits<double>::infinity();  // longer ones are cut, if possible in a silence
  double min_silence = 0.1;                     // a shorter pause does not end a segment
  double min_silence_to_cut = 0.098;
  bool cut_at_longest_silence = true;  // else at the last one
  double pad = 0.03;                   // added at both ends of each segment

  // What transcription wants, as in faster-whisper: whole sentences with their surroundings.
  static VoiceSettings for_transcription();
};

struct SpeechSegment {
  int64_t start = 0, end = 0;  // samples
  friend bool operator==(const SpeechSegment&, const SpeechSegment&) = default;
};

// One probability a window; `samples` is the length of the whole recording.
std::vector<SpeechSegment> speech_segments(std::span<const float> probabilities, int64_t window,
                                           int64_t samples, int rate, const VoiceSettings& settings);

}  // namespace cyb
