// SPDX-License-Identifier: Apache-2.0
#include "media/sound/sound.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "media/sound/decoder.h"
#include "media/sound/resampler.h"

namespace cyb {
namespace {

constexpr int64_t kBlock = 1 << 14;  // frames
// A small file that gives much sound is a bomb: silence in FLAC packs a thousand to one, speech never a
// hundred.
constexpr uint64_t kSuspicious = uint64_t{96} << 20,
                   kMostRatio = 2000;  // bytes; bytes for each of the file's

Error no_sound(const std::string& name) {
  return error(ErrorKind::InvalidFile, "{}: found no samples", name)
      .advise("the recording is empty or damaged; play it to see whether anything is left");
}

class BombWatch {
 public:
  BombWatch(const std::string& name, uint64_t file_bytes)
      : name_(name), most_(std::max(kSuspicious, file_bytes * kMostRatio)) {}
  void check(size_t samples) const {
    if (samples * sizeof(float) > most_)
      throw error(ErrorKind::InvalidFile, "{}: found {} million samples in a file of {} kB", name_,
                  samples >> 20, most_ / kMostRatio >> 10)
          .advise(
              "a file that unpacks like this is damaged or hostile; convert it to WAV first if it is not");
  }

 private:
  std::string name_;
  uint64_t most_;
};

float within_one(float v) { return std::isnan(v) ? 0.0f : std::clamp(v, -1.0f, 1.0f); }

// Frames to one channel. What is no number becomes silence before it can spread in the resampler.
void mix(std::span<const float> frames, int channels, const std::vector<float>& weights,
         std::vector<float>* out) {
  const auto c = static_cast<size_t>(channels);
  out->resize(frames.size() / c);
  for (size_t i = 0; i < out->size(); i++) {
    const float* frame = frames.data() + i * c;
    float sum = 0;
    if (weights.size() == c) {
      for (size_t k = 0; k < c; k++) sum += frame[k] * weights[k];
    } else {
      for (size_t k = 0; k < c; k++) sum += frame[k];
      sum /= static_cast<float>(channels);
    }
    (*out)[i] = std::isfinite(sum) ? sum : 0.0f;
  }
}

std::unique_ptr<SoundDecoder> choose(const std::shared_ptr<const SoundBytes>& bytes) {
  std::unique_ptr<SoundDecoder> decoder;
  if (is_mp3(bytes->bytes)) {  // libsndfile's MP3 library writes its complaints to the terminal
    try {
      return decode_with_libav(bytes);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::Io) throw;
    }
  }
  decoder = decode_with_sndfile(bytes);
  if (!decoder) return decode_with_libav(bytes);
  if (decoder->frames != 0) return decoder;
  // A WAV file that was written into a pipe may say that it has no frames; libav looks for itself.
  try {
    return decode_with_libav(bytes);
  } catch (const Error&) {
    throw no_sound(bytes->name);
  }
}

}  // namespace

std::unique_ptr<SoundDecoder> SoundDecoder::open(const std::string& path) {
  const auto bytes = SoundBytes::open(path);
  std::unique_ptr<SoundDecoder> decoder = choose(bytes);
  check_sound_shape(bytes->name, decoder->rate, decoder->channels);
  decoder->name = bytes->name;
  decoder->file_bytes = bytes->bytes.size();
  if (decoder->weights.empty()) decoder->weights = mix_weights(usual_speakers(decoder->channels));
  return decoder;
}

Sound read_sound(const std::string& path) {
  const auto decoder = SoundDecoder::open(path);
  const BombWatch watch(decoder->name, decoder->file_bytes);
  Sound sound{decoder->rate, decoder->channels, {}};
  std::vector<float> block(static_cast<size_t>(kBlock * decoder->channels));
  while (const size_t n = decoder->read(block)) {
    sound.samples.insert(sound.samples.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(n));
    watch.check(sound.samples.size());
  }
  if (sound.samples.empty()) throw no_sound(decoder->name);
  return sound;
}

std::vector<float> mono(const Sound& sound, int rate) {
  check_sound_shape("the sound", sound.rate, sound.channels);
  std::vector<float> one, out;
  Resampler resampler(sound.rate, rate);
  const std::vector<float> weights = mix_weights(usual_speakers(sound.channels));
  const std::span<const float> all(sound.samples);
  const auto step = static_cast<size_t>(kBlock * sound.channels);
  for (size_t at = 0; at < all.size(); at += step) {
    mix(all.subspan(at, std::min(step, all.size() - at)), sound.channels, weights, &one);
    resampler.run(one, &out);
  }
  resampler.finish(&out);
  for (float& v : out) v = within_one(v);
  return out;
}

struct MonoReader::State {
  State(const std::string& path, int to)
      : decoder(SoundDecoder::open(path)),
        resampler(decoder->rate, to),
        watch(decoder->name, decoder->file_bytes),
        rate(to) {
    block.resize(static_cast<size_t>(kBlock * decoder->channels));
  }

  // Decodes and resamples one more block; false at the end.
  bool more() {
    if (ended) return false;
    ready.erase(ready.begin(), ready.begin() + static_cast<std::ptrdiff_t>(taken));
    taken = 0;
    const size_t n = decoder->read(block), before = ready.size();
    if (n > 0) {
      mix(std::span<const float>(block).first(n), decoder->channels, decoder->weights, &one);
      resampler.run(one, &ready);
      any = true;
    } else {
      resampler.finish(&ready);
      ended = true;
      if (!any) throw no_sound(decoder->name);
    }
    for (size_t i = before; i < ready.size(); i++) ready[i] = within_one(ready[i]);
    given += ready.size() - before;
    watch.check(given);
    return true;
  }

  std::unique_ptr<SoundDecoder> decoder;
  Resampler resampler;
  BombWatch watch;
  int rate;
  size_t given = 0;  // samples so far
  std::vector<float> block, one, ready;
  size_t taken = 0;  // of `ready`
  bool any = false, ended = false;
};

MonoReader::MonoReader(const std::string& path, int rate) : state_(std::make_unique<State>(path, rate)) {}
MonoReader::~MonoReader() = default;
MonoReader::MonoReader(MonoReader&&) noexcept = default;
MonoReader& MonoReader::operator=(MonoReader&&) noexcept = default;

size_t MonoReader::read(std::span<float> out) {
  size_t done = 0;
  while (done < out.size()) {
    if (state_->taken == state_->ready.size()) {
      if (!state_->more()) break;
      continue;
    }
    const size_t n = std::min(out.size() - done, state_->ready.size() - state_->taken);
    std::copy_n(state_->ready.begin() + static_cast<std::ptrdiff_t>(state_->taken), n,
                out.begin() + static_cast<std::ptrdiff_t>(done));
    state_->taken += n;
    done += n;
  }
  return done;
}

int MonoReader::rate() const { return state_->rate; }
int MonoReader::source_rate() const { return state_->decoder->rate; }
int MonoReader::source_channels() const { return state_->decoder->channels; }
double MonoReader::source_seconds() const {
  const SoundDecoder& d = *state_->decoder;
  return d.frames < 0 ? -1.0 : static_cast<double>(d.frames) / d.rate;
}

std::vector<float> read_mono(const std::string& path, int rate) {
  MonoReader reader(path, rate);
  std::vector<float> out, block(size_t{1} << 16);
  while (const size_t n = reader.read(block))
    out.insert(out.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(n));
  return out;
}

}  // namespace cyb
