// SPDX-License-Identifier: Apache-2.0
// Segments against Silero's get_speech_timestamps (tests/goldens/voice, made by tools/goldens/voice.py).
#include "tasks/speech_segments.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace cyb {
namespace {

VoiceSettings settings_of(const nlohmann::json& j) {
  VoiceSettings s;
  s.threshold = j.value("threshold", s.threshold);
  if (j.contains("neg_threshold")) s.low_threshold = j["neg_threshold"].get<double>();
  s.min_speech = j.value("min_speech_duration_ms", 250.0) / 1000;
  s.max_speech = j.value("max_speech_duration_s", s.max_speech);
  s.min_silence = j.value("min_silence_duration_ms", 100.0) / 1000;
  s.pad = j.value("speech_pad_ms", 30.0) / 1000;
  s.cut_at_longest_silence = j.value("use_max_poss_sil_at_max_speech", true);
  return s;
}

TEST(SpeechSegments, EqualReference) {
  std::ifstream file(std::string(CYB_SOURCE_DIR) + "/tests/goldens/voice/segments.json");
  const nlohmann::json golden = nlohmann::json::parse(file);
  ASSERT_EQ(golden["cases"].size(), 60u);
  for (const auto& c : golden["cases"]) {
    std::vector<float> probabilities;
    for (const int p : c["probabilities"]) probabilities.push_back(static_cast<float>(p) / 1000);
    std::vector<std::vector<int64_t>> found;
    for (const SpeechSegment& s :
         speech_segments(probabilities, 512, c["samples"].get<int64_t>(), 16000, settings_of(c["settings"])))
      found.push_back({s.start, s.end});
    EXPECT_EQ(nlohmann::json(found), c["segments"]) << c["settings"] << " " << probabilities.size();
  }
}

TEST(SpeechSegments, SettingsForTranscriptionAreThoseOfFasterWhisper) {
  const VoiceSettings s = VoiceSettings::for_transcription();
  EXPECT_EQ(s.min_speech, 0);
  EXPECT_EQ(s.min_silence, 2);
  EXPECT_EQ(s.pad, 0.4);
  EXPECT_FALSE(s.cut_at_longest_silence);
}

}  // namespace
}  // namespace cyb
