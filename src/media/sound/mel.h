// SPDX-License-Identifier: Apache-2.0
// Log-mel spectrograms as speech models read them: periodic Hann window, power, triangular filters on
// Slaney's mel scale with Slaney's norm, log10 not more than 8 below the peak, (x + 4) / 4.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "format/config.h"

namespace cyb {

struct MelSettings {
  int rate = 16000;  // of the samples, per second
  int n_fft = 400;   // samples of a frame
  int hop = 160;     // from frame to frame
  int mels = 80;     // rows of the result
  int seconds = 30;  // the window that the model reads
  double f_min = 0;  // Hz
  double f_max = 8000;

  int64_t window_samples() const { return static_cast<int64_t>(seconds) * rate; }
  int64_t window_frames() const { return window_samples() / hop; }

  // The section `preprocessor` (keys as in preprocessor_config.json). A missing key keeps its value above;
  // one outside its range is an InvalidConfig error.
  static MelSettings from(const Config& preprocessor);
  bool operator==(const MelSettings&) const = default;
};

// Window, filters and transform of one setting. Safe to use from several threads.
class MelFrontEnd {
 public:
  explicit MelFrontEnd(const MelSettings& settings);
  ~MelFrontEnd();
  MelFrontEnd(MelFrontEnd&&) noexcept;
  MelFrontEnd& operator=(MelFrontEnd&&) noexcept;

  const MelSettings& settings() const;

  // [mels, frames], row-major. Samples are followed by zeros up to frames · hop; the signal is mirrored at
  // its beginning and at its end (that of the samples, when there are more than frames · hop).
  std::vector<float> log_mel(std::span<const float> samples, int64_t frames) const;

  // log_mel in its two steps, for recordings whose peak is known later: log10 of the power, at least 1e-10,
  std::vector<float> log_power(std::span<const float> samples, int64_t frames) const;
  // or a part of it, [count, mels] from frame `from` on, equal bit for bit for an even `from`;
  std::vector<float> log_power_rows(std::span<const float> samples, int64_t frames, int64_t from,
                                    int64_t count) const;
  // and the clamp to `peak` − 8 with (x + 4) / 4.
  static void normalize(std::span<float> values, float peak);

 private:
  struct Tables;
  std::unique_ptr<const Tables> tables_;
};

std::vector<float> log_mel(std::span<const float> samples, const MelSettings& settings, int64_t frames);

}  // namespace cyb
