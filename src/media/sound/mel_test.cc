// SPDX-License-Identifier: Apache-2.0
// Spectrograms against transformers' WhisperFeatureExtractor (tests/goldens/mel, made by
// tools/goldens/mel.py).
#include "media/sound/mel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/error.h"
#include "format/npz.h"
#include "media/sound/sound.h"

namespace cyb {
namespace {

std::vector<float> halves(const Tensor& t) {
  std::vector<float> out(static_cast<size_t>(t.elements()));
  for (size_t i = 0; i < out.size(); i++) out[i] = static_cast<float>(t.at<int16_t>(i)) / 32768.0f;
  return out;
}

TEST(Mel, EqualsReference) {
  const std::string root = CYB_SOURCE_DIR;
  const auto golden = read_npz(root + "/tests/goldens/mel/mel.npz");
  int compared = 0;
  for (const int mels : {80, 128}) {
    MelSettings settings;
    settings.mels = mels;
    const MelFrontEnd front_end(settings);
    const std::string ending = ".mel" + std::to_string(mels);
    for (const auto& [key, expected] : golden) {
      if (!key.ends_with(ending)) continue;
      const std::string name = key.substr(0, key.size() - ending.size());
      const bool jfk = name == "jfk";
      const std::vector<float> samples =
          jfk ? read_mono(root + "/tests/data/sound/jfk.wav", 16000) : halves(golden.at(name + ".samples"));
      const int64_t frames = jfk ? 3000 : expected.shape()[1], step = jfk ? 50 : 1;
      const std::vector<float> mel = front_end.log_mel(samples, frames);
      ASSERT_EQ(mel.size(), static_cast<size_t>(frames * mels));
      float worst = 0;
      for (int64_t m = 0; m < mels; m++)
        for (int64_t f = 0; f < frames; f += step) {
          const float r = expected.at<float>(static_cast<size_t>(m * (frames / step) + f / step));
          worst = std::max(worst, std::abs(mel[static_cast<size_t>(m * frames + f)] - r));
        }
      EXPECT_LE(worst, 1e-5f) << key;
      compared++;
    }
  }
  EXPECT_EQ(compared, 20);
}

// The transform by its definition, in f64.
TEST(Mel, EqualsDefinitionForOtherSettings) {
  for (const MelSettings& s :
       {MelSettings{.rate = 22050, .n_fft = 512, .hop = 100, .mels = 17, .f_min = 60, .f_max = 9000},
        MelSettings{.rate = 8000, .n_fft = 111, .hop = 37, .mels = 5, .f_max = 4000},
        MelSettings{.n_fft = 254, .hop = 254, .mels = 40}}) {
    const int64_t frames = 7, half = s.n_fft / 2;
    std::vector<float> x(static_cast<size_t>(frames * s.hop));
    for (size_t i = 0; i < x.size(); i++) x[i] = 0.3f * std::sin(static_cast<float>(i * i) * 1e-3f);
    const auto n = static_cast<int64_t>(x.size());
    const MelFrontEnd front_end(s);
    const std::vector<float> power = front_end.log_power(x, frames);
    // One filter of one frame sums what its triangle covers; the whole bank is compared through its sums.
    for (const int64_t frame : {int64_t{0}, int64_t{3}, frames - 1}) {
      std::vector<double> spectrum;
      for (int64_t k = 0; k <= half; k++) {
        double re = 0, im = 0;
        for (int64_t i = 0; i < s.n_fft; i++) {
          int64_t at = frame * s.hop + i - half;
          if (at < 0) at = -at;
          if (at >= n) at = 2 * (n - 1) - at;
          const double w = 0.5 - 0.5 * std::cos(2 * M_PI * static_cast<double>(i) / s.n_fft);
          const double angle = 2 * M_PI * static_cast<double>(k * i) / s.n_fft;
          re += w * static_cast<double>(x[static_cast<size_t>(at)]) * std::cos(angle);
          im -= w * static_cast<double>(x[static_cast<size_t>(at)]) * std::sin(angle);
        }
        spectrum.push_back(re * re + im * im);
      }
      const auto hz_of = [](double mel) {
        return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27);
      };
      const auto mel_of = [](double hz) {
        return hz < 1000 ? hz * 3 / 200 : 15 + 27 * std::log(hz / 1000) / std::log(6.4);
      };
      for (int64_t m = 0; m < s.mels; m++) {
        const auto edge = [&](int64_t i) {
          const double low = mel_of(s.f_min), high = mel_of(s.f_max);
          return hz_of(low + (high - low) * static_cast<double>(i) / (s.mels + 1));
        };
        const double left = edge(m), middle = edge(m + 1), right = edge(m + 2);
        double sum = 0;
        for (int64_t k = 0; k <= half; k++) {
          const double hz = static_cast<double>(k) * s.rate / s.n_fft;
          const double w = std::min((hz - left) / (middle - left), (right - hz) / (right - middle));
          if (w > 0) sum += w * 2 / (right - left) * spectrum[static_cast<size_t>(k)];
        }
        EXPECT_NEAR(power[static_cast<size_t>(m * frames + frame)], std::log10(std::max(sum, 1e-10)), 1e-4)
            << s.n_fft << " frame " << frame << " mel " << m;
      }
    }
  }
}

TEST(Mel, SilenceAfterTheSamplesCostsNothingAndChangesNothing) {
  std::vector<float> x(3 * 160 + 77);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<float>(i % 13) / 13 - 0.5f;
  const MelFrontEnd front_end{MelSettings{}};
  for (const int64_t frames : {4, 5, 6, 7, 30}) {
    std::vector<float> padded = x;
    padded.resize(static_cast<size_t>(frames * 160));
    EXPECT_EQ(front_end.log_mel(x, frames), front_end.log_mel(padded, frames)) << frames;
  }
}

TEST(Mel, SettingsComeFromThePreprocessorSection) {
  const MelSettings s = MelSettings::from(Config::parse(
      "feature_size = 128\nhop_length = 200\nn_fft = 512\nsampling_rate = 8000\nchunk_length = 20\n",
      "test"));
  EXPECT_EQ(s, (MelSettings{.rate = 8000, .n_fft = 512, .hop = 200, .mels = 128, .seconds = 20}));
  EXPECT_EQ(s.window_frames(), 800);
  EXPECT_EQ(MelSettings::from(Config()), MelSettings());
  for (const char* bad :
       {"n_fft = 0", "n_fft = 100000000", "hop_length = 0", "hop_length = 401", "feature_size = -1",
        "sampling_rate = 0", "chunk_length = 100000", "feature_size = \"80\""})
    EXPECT_THROW(MelSettings::from(Config::parse(bad, "test")), Error) << bad;
}

TEST(Mel, RefusesWhatItCannotMake) {
  const std::vector<float> x(1000);
  EXPECT_THROW(log_mel(x, MelSettings{}, 0), Error);
  EXPECT_THROW(log_mel(x, MelSettings{}, int64_t{1} << 40), Error);
  EXPECT_THROW(log_mel(std::span(x).first(10), MelSettings{}, 1), Error);  // no room for the mirror
  EXPECT_THROW(MelFrontEnd(MelSettings{.f_min = 9000}), Error);
}

TEST(Mel, PartsEqualTheWhole) {
  std::vector<float> x(16000 * 3 + 77);
  uint32_t seed = 5;
  for (float& v : x) v = static_cast<float>((seed = seed * 1664525 + 1013904223) >> 8) * 0x1p-23f - 1;
  const MelFrontEnd front_end{MelSettings{}};
  for (const int64_t frames : {303, 304, 310, 400}) {
    const std::vector<float> whole = front_end.log_power(x, frames);
    for (const int64_t piece : {2, 50, 100, 302, 1000})
      for (int64_t at = 0; at < frames; at += piece) {
        const int64_t n = std::min(piece, frames - at);
        const std::vector<float> rows = front_end.log_power_rows(x, frames, at, n);
        for (int64_t f = 0; f < n; f++)
          for (int64_t m = 0; m < 80; m++)
            ASSERT_EQ(rows[static_cast<size_t>(f * 80 + m)], whole[static_cast<size_t>(m * frames + at + f)])
                << frames << ' ' << piece << ' ' << at + f;
      }
  }
}

}  // namespace
}  // namespace cyb
