// SPDX-License-Identifier: Apache-2.0
#include "media/sound/mel.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "base/checked.h"
#include "base/error.h"
#include "ops/spectral/fft.h"

namespace cyb {
namespace {

constexpr int64_t kMostValues = int64_t{1} << 31;  // of one spectrogram: a day of 128 mels

// Slaney's mel scale: linear below 1 kHz, logarithmic above.
double to_mel(double hz) { return hz < 1000 ? hz * 3 / 200 : 15 + std::log(hz / 1000) * 27 / std::log(6.4); }
double to_hz(double mel) {
  return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

int setting(const Config& config, std::string_view key, int value, int least, int most) {
  const int64_t found = config.integer_or(key, value);
  if (found < least || found > most)
    throw config.invalid(key, "found {}, expected {} to {}", found, least, most)
        .advise("the file's sound settings are damaged; import the model again");
  return static_cast<int>(found);
}

}  // namespace

MelSettings MelSettings::from(const Config& preprocessor) {
  MelSettings s;
  s.rate = setting(preprocessor, "sampling_rate", s.rate, 1000, 384000);
  s.n_fft = setting(preprocessor, "n_fft", s.n_fft, 16, 1 << 16);
  s.hop = setting(preprocessor, "hop_length", s.hop, 1, s.n_fft);
  s.mels = setting(preprocessor, "feature_size", s.mels, 1, 1024);
  s.seconds = setting(preprocessor, "chunk_length", s.seconds, 1, 600);
  return s;
}

struct MelFrontEnd::Tables {
  // One row of the filter bank: `weights` from bin `first` on.
  struct Filter {
    int64_t first = 0;
    std::vector<float> weights;
  };

  explicit Tables(const MelSettings& s) : settings(s), fft(s.n_fft) {
    for (int i = 0; i < s.n_fft; i++)
      window.push_back(0.5 - 0.5 * std::cos(2 * M_PI * i / static_cast<double>(s.n_fft)));
    const double low = to_mel(s.f_min), high = to_mel(s.f_max);
    std::vector<double> edges;  // Hz
    for (int i = 0; i < s.mels + 2; i++) edges.push_back(to_hz(low + (high - low) * i / (s.mels + 1)));
    for (size_t m = 0; m < static_cast<size_t>(s.mels); m++) {
      const double left = edges[m], middle = edges[m + 1], right = edges[m + 2];
      Filter filter;
      for (int64_t k = 0; k < bins(); k++) {
        const double hz = static_cast<double>(k) * s.rate / s.n_fft;
        const double weight = std::min((hz - left) / (middle - left), (right - hz) / (right - middle));
        if (weight <= 0) continue;
        if (filter.weights.empty()) filter.first = k;
        filter.weights.push_back(static_cast<float>(weight * 2 / (right - left)));
      }
      filters.push_back(std::move(filter));
    }
  }

  int64_t bins() const { return settings.n_fft / 2 + 1; }

  MelSettings settings;
  Fft fft;
  std::vector<double> window;
  std::vector<Filter> filters;
};

MelFrontEnd::MelFrontEnd(const MelSettings& s) {
  if (s.rate < 1 || s.n_fft < 2 || s.hop < 1 || s.mels < 1 || !(s.f_min >= 0) || !(s.f_max > s.f_min))
    throw error(ErrorKind::InvalidConfig,
                "found mel settings rate {}, n_fft {}, hop {}, mels {}, {} to {} Hz", s.rate, s.n_fft, s.hop,
                s.mels, s.f_min, s.f_max)
        .advise("all must be positive, and the highest frequency above the lowest");
  tables_ = std::make_unique<const Tables>(s);
}

MelFrontEnd::~MelFrontEnd() = default;
MelFrontEnd::MelFrontEnd(MelFrontEnd&&) noexcept = default;
MelFrontEnd& MelFrontEnd::operator=(MelFrontEnd&&) noexcept = default;

const MelSettings& MelFrontEnd::settings() const { return tables_->settings; }

std::vector<float> MelFrontEnd::log_power(std::span<const float> samples, int64_t frames) const {
  const MelSettings& s = tables_->settings;
  if (frames < 1 || frames > kMostValues / s.mels)
    throw error(ErrorKind::Usage, "found {} frames of {} mels", frames, s.mels)
        .advise("transcribe the recording in pieces");
  const auto given = static_cast<int64_t>(samples.size());
  const int64_t length = std::max(given, frames * s.hop), half = s.n_fft / 2;
  if (length <= half)
    throw error(ErrorKind::Usage, "found {} samples for frames of {}", length, s.n_fft)
        .advise("ask for more frames");
  // Zeros after the samples, mirrored at both ends; the index of a frame's sample is never further out than
  // one mirror image.
  const auto sample = [&](int64_t i) -> double {
    if (i < 0) i = -i;
    if (i >= length) i = 2 * (length - 1) - i;
    return i >= 0 && i < given ? static_cast<double>(samples[static_cast<size_t>(i)]) : 0.0;
  };
  const auto n = static_cast<size_t>(s.n_fft), bins = static_cast<size_t>(tables_->bins());
  std::vector<Fft::Complex> in(n), out(n), work(static_cast<size_t>(tables_->fft.work()));
  std::vector<float> power[2] = {std::vector<float>(bins), std::vector<float>(bins)};
  std::vector<float> result(static_cast<size_t>(frames * s.mels), std::log10(1e-10f));
  // Frames that begin after the last sample are silent; only the mirror at the end could show them something.
  const int64_t sounding = given + half >= length ? frames : std::min(frames, (given + half) / s.hop + 1);
  // Two real frames are one complex transform: the first in the real parts, the second in the imaginary ones.
  for (int64_t frame = 0; frame < sounding; frame += 2) {
    const int64_t start = frame * s.hop - half;
    for (size_t i = 0; i < n; i++) {
      const int64_t at = start + static_cast<int64_t>(i);
      in[i] = {sample(at) * tables_->window[i], sample(at + s.hop) * tables_->window[i]};
    }
    tables_->fft.run(in.data(), out.data(), work.data());
    for (size_t k = 0; k < bins; k++) {
      const Fft::Complex z = out[k], y = std::conj(out[k == 0 ? 0 : n - k]);
      power[0][k] = static_cast<float>(std::norm(z + y) / 4);
      power[1][k] = static_cast<float>(std::norm(z - y) / 4);
    }
    for (int64_t f = frame; f < std::min(frame + 2, sounding); f++) {
      const float* p = power[f - frame].data();
      for (size_t m = 0; m < tables_->filters.size(); m++) {
        const Tables::Filter& filter = tables_->filters[m];
        float sum = 0;
        for (size_t k = 0; k < filter.weights.size(); k++)
          sum += filter.weights[k] * p[static_cast<size_t>(filter.first) + k];
        result[m * static_cast<size_t>(frames) + static_cast<size_t>(f)] = std::log10(std::max(sum, 1e-10f));
      }
    }
  }
  return result;
}

std::vector<float> MelFrontEnd::log_power_rows(std::span<const float> samples, int64_t frames, int64_t from,
                                               int64_t count) const {
  const MelSettings& s = tables_->settings;
  const auto size = static_cast<int64_t>(samples.size());
  // Frames beside those that are wanted see the false edges. An even number: frames are computed in pairs.
  const int64_t beside = round_up(ceil_div<int64_t>(s.n_fft / 2, s.hop), int64_t{2});
  const int64_t first = std::max<int64_t>(from - beside, 0);
  int64_t last = from + count + beside, end = std::min(size, last * s.hop);
  if (from + count >= frames || last >= frames) last = frames, end = size;  // the true edge
  const int64_t begin = std::min(first * s.hop, size);
  const std::vector<float> values =
      log_power(samples.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), last - first);
  const auto mels = static_cast<size_t>(s.mels), given = static_cast<size_t>(last - first);
  std::vector<float> rows(static_cast<size_t>(count) * mels);
  for (size_t f = 0; f < static_cast<size_t>(count); f++)
    for (size_t m = 0; m < mels; m++)
      rows[f * mels + m] = values[m * given + static_cast<size_t>(from - first) + f];
  return rows;
}

void MelFrontEnd::normalize(std::span<float> values, float peak) {
  for (float& v : values) v = (std::max(v, peak - 8.0f) + 4.0f) / 4.0f;
}

std::vector<float> MelFrontEnd::log_mel(std::span<const float> samples, int64_t frames) const {
  std::vector<float> values = log_power(samples, frames);
  normalize(values, *std::max_element(values.begin(), values.end()));
  return values;
}

std::vector<float> log_mel(std::span<const float> samples, const MelSettings& settings, int64_t frames) {
  return MelFrontEnd(settings).log_mel(samples, frames);
}

}  // namespace cyb
