// SPDX-License-Identifier: Apache-2.0
// From encoded windows to tokens: the rules of Whisper's decoder (times in pairs that never go back, what is
// never said), the likeliest token, drawing with a temperature, and beams.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "tasks/speech_model.h"

namespace cyb {

struct SpeechResult {
  std::vector<int32_t> tokens;  // without the prompt and the end
  double log_probability = 0;   // of the tokens and the end
  float no_speech = 0;          // probability that the window holds none

  double mean_log_probability() const { return log_probability / (static_cast<double>(tokens.size()) + 1); }
};

struct SpeechDecoding {
  bool timestamps = true;
  double temperature = 0;   // 0: the likeliest
  int beams = 1;            // with temperature 0
  int best_of = 1;          // drawn texts, with a temperature
  int64_t first_time = 50;  // the latest first time, in steps of 0.02 s
};

class SpeechDecoder {
 public:
  explicit SpeechDecoder(SpeechModel& model) : m_(model) {}

  // The likeliest tokens of several windows at once, each with its prompt. A window's result does not depend
  // on the others.
  std::vector<SpeechResult> greedy(std::span<const int> windows,
                                   std::span<const std::vector<int32_t>> prompts, const SpeechDecoding& how);
  // One window, by beams or by drawing. `seed` decides what is drawn.
  SpeechResult search(int window, const std::vector<int32_t>& prompt, const SpeechDecoding& how,
                      uint64_t seed);

 private:
  struct Row {
    SpeechResult result;
    bool done = false;
  };
  // Log-probabilities of what may follow, into probabilities_; −inf: may not.
  void allow(const float* logits, const std::vector<int32_t>& tokens, const SpeechDecoding& how);
  float no_speech(const float* logits) const;
  int32_t draw(double temperature, std::mt19937_64& random);
  bool full(const std::vector<int32_t>& prompt, const Row& row) const;
  SpeechResult beams(int window, const std::vector<int32_t>& prompt, const SpeechDecoding& how);
  // The prompt in rows 0 to n − 1, and the logits behind it.
  const float* begin(int window, int rows, const std::vector<int32_t>& prompt, float* no_speech);

  SpeechModel& m_;
  std::vector<float> probabilities_;
};

}  // namespace cyb
