// SPDX-License-Identifier: Apache-2.0
// Formats that libsndfile reads, from memory. It is loaded with the first of them: it brings seven libraries
// of codecs with it.
#include <sndfile.h>

#include <algorithm>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "media/sound/decoder.h"

namespace cyb {
namespace {

struct Sndfile {
  decltype(&::sf_open_virtual) sf_open_virtual = nullptr;
  decltype(&::sf_command) sf_command = nullptr;
  decltype(&::sf_readf_float) sf_readf_float = nullptr;
  decltype(&::sf_close) sf_close = nullptr;

  Sndfile() {
    const DynamicLibrary library(CYB_LIBSNDFILE);
    library.find("sf_open_virtual", &sf_open_virtual);
    library.find("sf_command", &sf_command);
    library.find("sf_readf_float", &sf_readf_float);
    library.find("sf_close", &sf_close);
  }
};

const Sndfile& sndfile() {
  static const Sndfile library;
  return library;
}

SoundCursor& cursor(void* user) { return *static_cast<SoundCursor*>(user); }
sf_count_t cursor_length(void* user) { return cursor(user).size(); }
sf_count_t cursor_seek(sf_count_t offset, int whence, void* user) {
  return cursor(user).seek(offset, whence) ? cursor(user).at() : -1;
}
sf_count_t cursor_read(void* out, sf_count_t count, void* user) { return cursor(user).read(out, count); }
sf_count_t cursor_write(const void*, sf_count_t, void*) { return 0; }
sf_count_t cursor_tell(void* user) { return cursor(user).at(); }

Speaker speaker(int place) {
  switch (place) {
    case SF_CHANNEL_MAP_MONO:
    case SF_CHANNEL_MAP_CENTER:
    case SF_CHANNEL_MAP_FRONT_CENTER:
      return Speaker::Centre;
    case SF_CHANNEL_MAP_LEFT:
    case SF_CHANNEL_MAP_RIGHT:
    case SF_CHANNEL_MAP_FRONT_LEFT:
    case SF_CHANNEL_MAP_FRONT_RIGHT:
    case SF_CHANNEL_MAP_FRONT_LEFT_OF_CENTER:
    case SF_CHANNEL_MAP_FRONT_RIGHT_OF_CENTER:
      return Speaker::Front;
    case SF_CHANNEL_MAP_REAR_CENTER:
      return Speaker::BackCentre;
    case SF_CHANNEL_MAP_REAR_LEFT:
    case SF_CHANNEL_MAP_REAR_RIGHT:
    case SF_CHANNEL_MAP_SIDE_LEFT:
    case SF_CHANNEL_MAP_SIDE_RIGHT:
      return Speaker::Surround;
    case SF_CHANNEL_MAP_LFE:
      return Speaker::Bass;
    default:
      return Speaker::Other;
  }
}

class SndfileDecoder : public SoundDecoder {
 public:
  explicit SndfileDecoder(std::shared_ptr<const SoundBytes> bytes) : cursor_(std::move(bytes)) {
    SF_VIRTUAL_IO io{cursor_length, cursor_seek, cursor_read, cursor_write, cursor_tell};
    SF_INFO info{};
    file_ = sndfile().sf_open_virtual(&io, SFM_READ, &info, &cursor_);
    if (!file_) return;
    rate = info.samplerate;
    channels = info.channels;
    frames = info.frames;
    if (channels < 1 || channels > 1024) return;  // check_sound_shape says so
    std::vector<int> map(static_cast<size_t>(channels));
    if (sndfile().sf_command(file_, SFC_GET_CHANNEL_MAP_INFO, map.data(),
                             channels * static_cast<int>(sizeof(int))) != SF_TRUE)
      return;
    std::vector<Speaker> speakers;
    for (const int place : map) speakers.push_back(speaker(place));
    weights = mix_weights(speakers);
  }
  ~SndfileDecoder() override {
    if (file_) sndfile().sf_close(file_);
  }

  bool opened() const { return file_ != nullptr; }

  size_t read(std::span<float> out) override {
    const auto count = static_cast<sf_count_t>(out.size()) / channels;
    const sf_count_t got = count > 0 ? sndfile().sf_readf_float(file_, out.data(), count) : 0;
    return got > 0 ? static_cast<size_t>(got * channels) : 0;
  }

 private:
  SoundCursor cursor_;
  SNDFILE* file_ = nullptr;
};

std::string_view beginning(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 16)};
}

// Formats that are libsndfile's, by their first bytes.
bool is_known(std::span<const uint8_t> bytes) {
  for (const std::string_view mark : {"RIFF", "RIFX", "RF64", "FORM", "fLaC", "OggS", "caff", ".snd"})
    if (beginning(bytes).starts_with(mark)) return true;
  return is_mp3(bytes);
}

}  // namespace

// A tag, or the header of a frame of layer III.
bool is_mp3(std::span<const uint8_t> bytes) {
  return beginning(bytes).starts_with("ID3") ||
         (bytes.size() >= 4 && bytes[0] == 0xff && (bytes[1] & 0xe6) == 0xe2);
}

std::unique_ptr<SoundDecoder> decode_with_sndfile(std::shared_ptr<const SoundBytes> bytes) {
  if (!is_known(bytes->bytes)) return nullptr;
  auto decoder = std::make_unique<SndfileDecoder>(std::move(bytes));
  if (!decoder->opened()) return nullptr;
  return decoder;
}

}  // namespace cyb
