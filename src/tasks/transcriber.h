// SPDX-License-Identifier: Apache-2.0
// Recordings of any length to texts with times: windows of 30 s, each beginning where the last one's words
// end, as the reference does it. Several recordings, or parts of one, advance together.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tasks/speech_decoder.h"
#include "tasks/transcript.h"

namespace cyb {

struct TranscribeOptions {
  std::string language;    // "en"; empty: heard from the first window
  bool translate = false;  // into English
  bool timestamps = true;
  bool words = false;     // times of words
  std::string prompt;     // said before the first window: names, spelling
  bool condition = true;  // each window knows the text before it
  int beams = 1, best_of = 5;
  std::vector<double> temperatures = {0, 0.2, 0.4, 0.6, 0.8, 1.0};  // the next one where a text looks wrong
  double compression_limit = 2.4;                                   // more: it repeats itself
  double log_probability_limit = -1.0;                              // less: it is a guess
  double no_speech_limit = 0.6;                                     // more, and a guess: silence
  double forget_above = 0.5;  // temperature after which the text before is not told any more
  uint64_t seed = 0;
};

// Whether a text says the same over and over: its bytes over those of its deflated form.
double compression_of(const std::string& text);

class Transcriber {
 public:
  explicit Transcriber(SpeechModel& model) : m_(model), decoder_(model) {}

  // Called for each segment of recording `index` as it is found, in order within a recording; returns false
  // to stop.
  using OnSegment = std::function<bool(size_t index, const SpokenSegment&)>;
  // Seconds of recording `index` that are done.
  using OnProgress = std::function<void(size_t index, double seconds)>;
  // The samples before `end` of recording `index` are not looked at any more.
  using OnPassed = std::function<void(size_t index, size_t end)>;
  // Samples at the front end's rate. Recordings are independent of each other; as many of them as the model
  // has windows advance at once. A recording alone is cut at quiet places into `parts` that do not know each
  // other.
  std::vector<Transcript> run(std::span<const std::span<const float>> recordings,
                              const TranscribeOptions& options, int parts, const OnSegment& on_segment,
                              const OnProgress& on_progress = {}, const std::atomic<bool>* cancel = nullptr,
                              const OnPassed& on_passed = {});

 private:
  struct Features;
  struct Stream;
  struct Window;
  void prepare(Stream& s, const TranscribeOptions& o);
  std::vector<int32_t> prompt_of(const Stream& s, const TranscribeOptions& o) const;
  // Another try at a window where the text looks wrong; false: it may stand.
  bool looks_wrong(const Window& w, const TranscribeOptions& o) const;
  void fall_back(int index, Window& w, const TranscribeOptions& o, uint64_t seed);
  void measure(Window& w) const;
  void take(int index, Stream& s, Window& w, const TranscribeOptions& o);
  std::vector<SpokenSegment> cut(Stream& s, const Window& w, bool* ends_with_time) const;
  std::string text_of(const std::vector<int32_t>& tokens) const;

  SpeechModel& m_;
  SpeechDecoder decoder_;
};

}  // namespace cyb
