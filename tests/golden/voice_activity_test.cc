// SPDX-License-Identifier: Apache-2.0
// Silero's voice-activity graphs of the folder CYB_TEST_MODELS (silero-vad/NAME.onnx, as its package has
// them): the segments of recordings equal to those of the package (tests/goldens/voice).
#include "tasks/voice_activity.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "import/import.h"
#include "media/sound/sound.h"
#include "support/golden_json.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;

std::vector<std::vector<int64_t>> plain(const std::vector<SpeechSegment>& segments) {
  std::vector<std::vector<int64_t>> out;
  for (const SpeechSegment& s : segments) out.push_back({s.start, s.end});
  return out;
}

TEST(VoiceActivity, SegmentsEqualReference) {
  const char* models = std::getenv("CYB_TEST_MODELS");
  std::vector<fs::path> files;
  // All variants but that of half precision, whose probabilities are others.
  for (const char* name : {"silero-vad", "silero-vad-16k", "silero-vad-16k-sequence",
                           "silero-vad-16k-openvino", "silero-vad-ifless"})
    if (const fs::path path = fs::path(models ? models : "") / (std::string(name) + ".onnx");
        models && fs::exists(path))
      files.push_back(path);
  if (files.empty())
    GTEST_SKIP() << "CYB_TEST_MODELS has no silero-vad.onnx: tools/test.sh tells how to get it";
  const nlohmann::json golden = test::read_json(test::goldens_folder() + "/voice/segments.json");
  const std::vector<float> jfk =
      read_mono(std::string(CYB_SOURCE_DIR) + "/tests/data/sound/jfk.wav", VoiceActivity::kRate);
  std::vector<float> pauses;
  for (const auto& p : golden["pauses"]) {
    pauses.resize(pauses.size() + p[0].get<size_t>());
    pauses.insert(pauses.end(), jfk.begin() + p[1].get<std::ptrdiff_t>(),
                  jfk.begin() + p[2].get<std::ptrdiff_t>());
  }
  pauses.resize(pauses.size() + 20000);
  for (const fs::path& path : files) {
    const std::string file = fs::temp_directory_path() / fmt::format("cyb-voice-{}.model", ::getpid());
    ImportOptions o;
    o.out = file;
    import_model(path.string(), o);
    VoiceActivity voice(file, {});
    fs::remove(file);
    for (const auto& [name, sound] :
         {std::pair<const char*, const std::vector<float>&>{"jfk", jfk}, {"pauses", pauses}}) {
      const auto& expected = golden["recordings"][name];
      EXPECT_EQ(nlohmann::json(plain(voice.segments(sound))), expected["default"]) << path << " " << name;
      EXPECT_EQ(nlohmann::json(plain(voice.segments(sound, VoiceSettings::for_transcription()))),
                expected["transcription"])
          << path << " " << name;
    }
    // Pieces of any length give the same probabilities.
    std::vector<float> whole, pieces;
    voice.reset();
    voice.hear(jfk, &whole);
    voice.finish(&whole);
    voice.reset();
    for (size_t at = 0, n = 1; at < jfk.size(); at += n, n = n * 7 % 2999)
      voice.hear(std::span<const float>(jfk).subspan(at, std::min(n, jfk.size() - at)), &pieces);
    voice.finish(&pieces);
    EXPECT_EQ(whole, pieces) << path;
    EXPECT_EQ(whole.size(), (jfk.size() + 511) / 512);
  }
}

}  // namespace
}  // namespace cyb
