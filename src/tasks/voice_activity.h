// SPDX-License-Identifier: Apache-2.0
// Where somebody speaks: probabilities from a recurrent graph that hears a window at a time, segments from
// these.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/session.h"
#include "tasks/language_model.h"
#include "tasks/speech_segments.h"

namespace cyb {

class VoiceActivity {
 public:
  // Whether a graph has this interface: it hears `input` (a window behind the end of the one before) and has
  // either `state` (with `sr` or without), or `h` and `c` and any number of windows at once.
  static bool knows(const ir::Graph& graph);

  // Throws UnsupportedModel where the file's graph has another interface.
  VoiceActivity(const std::string& path, const OpenOptions& options);
  VoiceActivity(ir::Program program, std::shared_ptr<const WeightSource> weights, const OpenOptions& options);
  ~VoiceActivity();

  static constexpr int kRate = 16000;
  static constexpr int64_t kWindow = 512, kContext = 64;  // samples; context of the window before

  // A recording in pieces of any length. The probability of each window that is complete is added to
  // `probabilities`; finish() fills the last one with silence.
  void hear(std::span<const float> samples, std::vector<float>* probabilities);
  void finish(std::vector<float>* probabilities);
  void reset();  // a new recording

  // All of it at once.
  std::vector<SpeechSegment> segments(std::span<const float> samples, const VoiceSettings& settings = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cyb
