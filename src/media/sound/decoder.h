// SPDX-License-Identifier: Apache-2.0
// What the decoders of sound have in common: where bytes come from, and how frames are pulled.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace cyb {

// The bytes of a recording: a mapped file, or what a pipe gave, in memory or in a temporary file.
class SoundBytes {
 public:
  virtual ~SoundBytes() = default;
  std::span<const uint8_t> bytes;
  std::string name;  // for messages

  static std::shared_ptr<const SoundBytes> open(const std::string& path);
  // Gives memory back; the bytes are read again when they are wanted.
  virtual void drop(uint64_t, uint64_t) const {}
};

// A place in the bytes. What was read long ago is given back: a long recording needs no more memory than a
// short one.
class SoundCursor {
 public:
  explicit SoundCursor(std::shared_ptr<const SoundBytes> source) : source_(std::move(source)) {}
  int64_t size() const { return static_cast<int64_t>(source_->bytes.size()); }
  int64_t at() const { return at_; }
  // Up to `count` bytes; returns how many.
  int64_t read(void* out, int64_t count);
  // To `offset` from the beginning, the present place or the end (SEEK_SET …). False, without a move:
  // outside.
  bool seek(int64_t offset, int whence);

 private:
  std::shared_ptr<const SoundBytes> source_;
  int64_t at_ = 0, kept_ = 0;  // what lies before kept_ was given back
};

class SoundDecoder {
 public:
  virtual ~SoundDecoder() = default;
  // Whole frames, interleaved, into `out`; 0 samples at the end.
  virtual size_t read(std::span<float> out) = 0;

  int rate = 0;
  int channels = 0;
  std::string name;  // for messages
  uint64_t file_bytes = 0;
  int64_t frames = -1;         // what the header says, −1 when it does not
  std::vector<float> weights;  // of each channel in the mix to one; empty: all alike

  static std::unique_ptr<SoundDecoder> open(const std::string& path);
};

// Null for what libsndfile does not read.
std::unique_ptr<SoundDecoder> decode_with_sndfile(std::shared_ptr<const SoundBytes> bytes);
// Throws InvalidFile, and Io where libav is not installed.
std::unique_ptr<SoundDecoder> decode_with_libav(std::shared_ptr<const SoundBytes> bytes);

bool is_mp3(std::span<const uint8_t> bytes);

// Where a channel's speaker stands, for the mix to one channel.
enum class Speaker { Front, Centre, Surround, BackCentre, Bass, Other };
// Weights that sum to 1, as ffmpeg's default mix: sides 0.7 of the centre, surround 0.5, no bass.
std::vector<float> mix_weights(const std::vector<Speaker>& speakers);
// The speakers of a file that has so many channels and does not say where they stand.
std::vector<Speaker> usual_speakers(int channels);

// Throws InvalidFile for rates and channel counts that no recording has.
void check_sound_shape(const std::string& name, int64_t rate, int64_t channels);

}  // namespace cyb
