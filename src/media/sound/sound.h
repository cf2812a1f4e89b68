// SPDX-License-Identifier: Apache-2.0
// Recordings as samples. The format is known by the content, never by the name: WAV, FLAC, OGG, AIFF, AU and
// CAF through libsndfile; MP3, M4A, WebM and what else there is through libav, where it is installed (MP3
// without, too).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cyb {

struct Sound {
  int rate = 0;  // frames per second
  int channels = 0;
  std::vector<float> samples;  // interleaved, −1 to 1

  int64_t frames() const { return channels > 0 ? static_cast<int64_t>(samples.size()) / channels : 0; }
  double seconds() const { return rate > 0 ? static_cast<double>(frames()) / rate : 0; }
};

// A whole recording as it is; "-" is the standard input. Errors are Io or InvalidFile and name the path.
Sound read_sound(const std::string& path);

// One channel at `rate`: the channels' mean (surround: weighted as speakers are), resampled in high quality,
// limited to −1…1; what is no number becomes silence.
std::vector<float> mono(const Sound& sound, int rate);

// read_sound and mono in blocks: never holds the recording at its own rate. A small file that unpacks to
// hours is refused as a bomb.
std::vector<float> read_mono(const std::string& path, int rate);

// The same, as much at a time as wanted: for recordings that are longer than memory. A small file that
// unpacks to hours is refused as a bomb.
class MonoReader {
 public:
  MonoReader(const std::string& path, int rate);
  ~MonoReader();
  MonoReader(MonoReader&&) noexcept;
  MonoReader& operator=(MonoReader&&) noexcept;

  // Fills `out` from its beginning and returns how many samples there were: less than asked only at the end.
  size_t read(std::span<float> out);

  int rate() const;
  // What the file says about itself; seconds < 0 where it does not say. Not to be trusted with memory.
  int source_rate() const;
  int source_channels() const;
  double source_seconds() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace cyb
