// SPDX-License-Identifier: Apache-2.0
// Recordings against what ffmpeg decodes of them (tests/goldens/sound, made by tools/goldens/sound_files.py).
#include "media/sound/sound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "format/npz.h"

namespace cyb {
namespace {

const std::string kData = std::string(CYB_SOURCE_DIR) + "/tests/data/sound/";

struct Difference {
  double max = 0, relative = 0;
};

constexpr size_t kEdge = 100;  // samples at either end that are not compared

Difference difference(std::span<const float> a, std::span<const float> b) {
  Difference d;
  double sum = 0, whole = 0;
  for (size_t i = 0; i + kEdge < std::min(a.size(), b.size()); i++) {
    const double x = static_cast<double>(a[i]) - static_cast<double>(b[i]);
    d.max = std::max(d.max, std::abs(x));
    sum += x * x;
    whole += static_cast<double>(b[i]) * static_cast<double>(b[i]);
  }
  d.relative = std::sqrt(sum / std::max(whole, 1e-12));
  return d;
}

TEST(Sound, EveryFormatEqualsReference) {
  const auto golden = read_npz(std::string(CYB_SOURCE_DIR) + "/tests/goldens/sound/decoded.npz");
  ASSERT_EQ(golden.size(), 24u);
  for (const auto& [key, expected] : golden) {
    const std::string name = key.substr(0, key.rfind(".mono16k"));
    std::vector<float> reference(static_cast<size_t>(expected.elements()));
    for (size_t i = 0; i < reference.size(); i++)
      reference[i] = static_cast<float>(expected.at<int16_t>(i)) / 32768.0f;
    const std::vector<float> ours = read_mono(kData + "formats/" + name, 16000);
    // ffmpeg leaves out the last piece of a Vorbis block that the stream cuts.
    EXPECT_NEAR(static_cast<double>(ours.size()), static_cast<double>(reference.size()),
                name == "vorbis.ogg" ? 64 : 1)
        << name;
    // The reference is rounded to 16 bits, and goes on with a mirror image where the recording ends.
    const Difference d = difference(std::span(ours).subspan(kEdge), std::span(reference).subspan(kEdge));
    // Opus in OGG goes through libopus here, through ffmpeg's own decoder there.
    EXPECT_LE(d.relative, name == "opus.ogg" ? 2e-3 : 6e-4) << name << ": at most " << d.max;
  }
}

TEST(Sound, BigEndianWav) {
  EXPECT_EQ(read_mono(kData + "formats/big_endian.wav", 16000), read_mono(kData + "formats/s16.aiff", 16000));
}

// A WAV file of 16-bit frames.
std::string wav(int rate, int channels, const std::vector<int16_t>& samples) {
  const auto word = [](uint32_t v, int n) {
    std::string s;
    for (int i = 0; i < n; i++) s += static_cast<char>(v >> (8 * i));
    return s;
  };
  const auto bytes = static_cast<uint32_t>(samples.size() * 2), r = static_cast<uint32_t>(rate),
             c = static_cast<uint32_t>(channels);
  std::string out = "RIFF" + word(36 + bytes, 4) + "WAVEfmt " + word(16, 4) + word(1, 2) + word(c, 2) +
                    word(r, 4) + word(r * c * 2, 4) + word(c * 2, 2) + word(16, 2) + "data" + word(bytes, 4);
  out.append(reinterpret_cast<const char*>(samples.data()), bytes);
  return out;
}

class TemporarySound {
 public:
  explicit TemporarySound(const std::string& content) : path_(temporary_name(".bin")) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporarySound() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Sound, ReadsFramesAsTheyAre) {
  const TemporarySound file(wav(12345, 3, {0, 16384, -32768, 32767, 1, -1}));
  const Sound sound = read_sound(file.path());
  EXPECT_EQ(sound.rate, 12345);
  EXPECT_EQ(sound.channels, 3);
  EXPECT_EQ(sound.frames(), 2);
  EXPECT_EQ(sound.samples, (std::vector<float>{0, 0.5f, -1, 32767 / 32768.0f, 1 / 32768.0f, -1 / 32768.0f}));
}

TEST(Sound, BlocksGiveWhatTheWholeGives) {
  for (const char* name :
       {"jfk.wav", "formats/s16_44k_stereo.wav", "formats/s32_8k.wav", "formats/surround_48k.wav"}) {
    const std::vector<float> whole = mono(read_sound(kData + name), 16000);
    EXPECT_EQ(read_mono(kData + name, 16000), whole) << name;
    MonoReader reader(kData + name, 16000);
    std::vector<float> pieces, piece(777);
    while (const size_t n = reader.read(piece))
      pieces.insert(pieces.end(), piece.begin(), piece.begin() + static_cast<long>(n));
    EXPECT_EQ(pieces, whole) << name;
  }
}

TEST(Sound, ReaderKnowsItsSource) {
  const MonoReader reader(kData + "formats/s16_44k_stereo.wav", 16000);
  EXPECT_EQ(reader.source_rate(), 44100);
  EXPECT_EQ(reader.source_channels(), 2);
  EXPECT_NEAR(reader.source_seconds(), 0.35, 0.001);
}

// A tone keeps its height and phase through the resampler.
TEST(Sound, ResamplingKeepsATone) {
  for (const auto& [from, to] :
       {std::pair{44100, 16000}, {8000, 16000}, {96000, 16000}, {11025, 22050}, {16001, 16000}}) {
    Sound sound{from, 1, {}};
    for (int i = 0; i < from; i++)
      sound.samples.push_back(static_cast<float>(0.5 * std::sin(2 * M_PI * 997 * i / from)));
    const std::vector<float> out = mono(sound, to);
    ASSERT_NEAR(static_cast<double>(out.size()), to, 1) << from;
    double worst = 0;
    for (int i = to / 10; i < to * 9 / 10; i++)
      worst = std::max(worst, std::abs(static_cast<double>(out[static_cast<size_t>(i)]) -
                                       0.5 * std::sin(2 * M_PI * 997 * i / to)));
    EXPECT_LE(worst, 2e-4) << from << " to " << to;
  }
}

TEST(Sound, OddSamplesAreMadeHarmless) {
  const float nan = std::nanf(""), inf = INFINITY;
  for (const int rate : {16000, 44100}) {
    const std::vector<float> out =
        mono(Sound{rate, 2, {nan, 0, inf, 1, 1e38f, 1e38f, -5, -5, 0.5f, 0.5f}}, 16000);
    for (const float v : out) EXPECT_TRUE(v >= -1 && v <= 1) << v;
  }
}

// What players play although the header lies: unknown lengths as pipes write them, and files that end early.
TEST(Sound, LengthsThatLieAreNotBelieved) {
  const std::vector<int16_t> samples(5000, 1000);
  for (const uint32_t length : {0u, 0xffffffffu, 0x7fffffffu, 20000u}) {
    std::string content = wav(16000, 1, samples);
    std::memcpy(content.data() + 40, &length, 4);
    std::memcpy(content.data() + 4, &length, 4);
    const TemporarySound file(content);
    EXPECT_EQ(read_mono(file.path(), 16000).size(), 5000u) << length;
  }
  const TemporarySound cut(wav(16000, 1, samples).substr(0, 44 + 3001));
  EXPECT_EQ(read_mono(cut.path(), 16000).size(), 1500u);
}

std::string message(const std::string& content) {
  const TemporarySound file(content);
  try {
    read_mono(file.path(), 16000);
  } catch (const Error& e) {
    EXPECT_TRUE(e.kind() == ErrorKind::InvalidFile) << e.what();
    EXPECT_FALSE(e.advice().empty()) << e.what();
    return e.message();
  }
  return "accepted";
}

TEST(Sound, RefusesWhatIsNoRecording) {
  const std::string good = wav(16000, 1, std::vector<int16_t>(100, 5));
  EXPECT_NE(message("").find("is empty"), std::string::npos);
  EXPECT_NE(message("This is a text and no recording.").find("no sound"), std::string::npos);
  EXPECT_NE(message(std::string(100000, '\0')).find("no sound"), std::string::npos);
  EXPECT_NE(message(good.substr(0, 44)).find("no samples"), std::string::npos) << message(good.substr(0, 44));
  EXPECT_NE(message(good.substr(0, 30)), "accepted");
  EXPECT_NE(message(wav(20, 1, {1, 2, 3})).find("20 samples per second"), std::string::npos);
  EXPECT_NE(message(wav(2'000'000'000, 1, {1, 2, 3})).find("samples per second"), std::string::npos);
  EXPECT_NE(message(wav(16000, 200, std::vector<int16_t>(400))).find("200 channels"), std::string::npos);
  EXPECT_NE(message(wav(16000, 0, {1, 2, 3})), "accepted");
  // A playlist names other files: it is not followed.
  EXPECT_NE(message("#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n/etc/passwd\n#EXT-X-ENDLIST\n")
                .find("no sound"),
            std::string::npos);
  EXPECT_NE(message("ffconcat version 1.0\nfile /etc/passwd\n").find("no sound"), std::string::npos);
  EXPECT_THROW(read_mono(kData, 16000), Error);
  EXPECT_THROW(read_mono(kData + "missing.wav", 16000), Error);
}

}  // namespace
}  // namespace cyb
