// SPDX-License-Identifier: Apache-2.0
// All other formats, through libavformat and libavcodec. They are loaded when the first such file comes: they
// bring a hundred libraries with them. Only containers and codecs of sound are allowed, from memory only:
// playlists and other files that name further files or addresses are not opened.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/dynamic_library.h"
#include "base/error.h"
#include "media/sound/decoder.h"

namespace cyb {
namespace {

constexpr const char* kFormats =
    "aac,ac3,eac3,adts,aiff,alaw,amr,ape,asf,au,avi,caf,dts,flac,flv,loas,matroska,mov,mp3,mpeg,mpegts,mulaw,"
    "ogg,"
    "tta,w64,wav,wv";
constexpr const char* kCodecs =
    "aac,aac_fixed,aac_latm,ac3,adpcm_ima_qt,adpcm_ima_wav,adpcm_ms,adpcm_swf,adpcm_yamaha,alac,amrnb,amrwb,"
    "ape,dca,eac3,flac,"
    "g722,g723_1,g726,g729,gsm,gsm_ms,libgsm,libgsm_ms,libopus,libspeex,libvorbis,mp1,mp1float,mp2,mp2float,"
    "mp3,"
    "mp3float,opus,pcm_alaw,pcm_bluray,pcm_dvd,pcm_f32be,pcm_f32le,pcm_f64be,pcm_f64le,pcm_mulaw,pcm_s16be,"
    "pcm_s16be_planar,pcm_s16le,pcm_s16le_planar,pcm_s24be,pcm_s24le,pcm_s24le_planar,pcm_s32be,pcm_s32le,"
    "pcm_s32le_planar,pcm_s8,pcm_s8_planar,pcm_u16be,pcm_u16le,pcm_u24be,pcm_u24le,pcm_u32be,pcm_u32le,pcm_"
    "u8,"
    "speex,tta,vorbis,wavpack,wmalossless,wmapro,wmav1,wmav2,wmavoice";
constexpr size_t kMostMemory = size_t{64} << 20;  // one allocation of libav
constexpr int kProbe = 1 << 16;                   // block that it reads

// The functions that are used, found once.
struct Libav {
#define CYB_LIBAV_FUNCTIONS(X)                                                                              \
  X(util, av_malloc)                                                                                        \
  X(util, av_freep)                                                                                         \
  X(util, av_max_alloc)                                                                                     \
  X(util, av_log_set_level)                                                                                 \
  X(util, av_dict_set)                                                                                      \
  X(util, av_dict_free)                                                                                     \
  X(util, av_frame_alloc)                                                                                   \
  X(util, av_frame_free) X(util, av_strerror) X(util, av_get_bytes_per_sample)                              \
      X(util, av_sample_fmt_is_planar) X(util, av_channel_layout_channel_from_index)                        \
          X(codec, avcodec_find_decoder) X(codec, avcodec_alloc_context3) X(codec, avcodec_free_context)    \
              X(codec, avcodec_parameters_to_context) X(codec, avcodec_open2) X(codec, avcodec_send_packet) \
                  X(codec, avcodec_receive_frame) X(codec, av_packet_alloc) X(codec, av_packet_free)        \
                      X(codec, av_packet_unref) X(format, avformat_alloc_context)                           \
                          X(format, avformat_open_input) X(format, avformat_close_input)                    \
                              X(format, avformat_find_stream_info) X(format, av_find_best_stream)           \
                                  X(format, av_read_frame) X(format, avio_alloc_context)                    \
                                      X(format, avio_context_free)
#define CYB_LIBAV_POINTER(library, name) decltype(&::name) name = nullptr;
  CYB_LIBAV_FUNCTIONS(CYB_LIBAV_POINTER)
#undef CYB_LIBAV_POINTER

  Libav() {
    const DynamicLibrary util(fmt::format("libavutil.so.{}", LIBAVUTIL_VERSION_MAJOR));
    const DynamicLibrary codec(fmt::format("libavcodec.so.{}", LIBAVCODEC_VERSION_MAJOR));
    const DynamicLibrary format(fmt::format("libavformat.so.{}", LIBAVFORMAT_VERSION_MAJOR));
#define CYB_LIBAV_FIND(library, name) library.find(#name, &name);
    CYB_LIBAV_FUNCTIONS(CYB_LIBAV_FIND)
#undef CYB_LIBAV_FIND
    av_log_set_level(AV_LOG_QUIET);  // the error that is thrown says it
    av_max_alloc(kMostMemory);
  }
};

const Libav& libav(const std::string& name) {
  try {
    static const Libav functions;
    return functions;
  } catch (const Error& e) {
    throw error(ErrorKind::Io, "{}: this format is read with libav: {}", name, e.message())
        .advise(
            "install libavformat{} (Debian: apt-get install libavformat{}), or convert the recording to WAV, "
            "FLAC, "
            "OGG or MP3",
            LIBAVFORMAT_VERSION_MAJOR, LIBAVFORMAT_VERSION_MAJOR);
  }
}

int cursor_read(void* user, uint8_t* out, int count) {
  const int64_t n = static_cast<SoundCursor*>(user)->read(out, count);
  return n > 0 ? static_cast<int>(n) : AVERROR_EOF;
}

int64_t cursor_seek(void* user, int64_t offset, int whence) {
  auto* cursor = static_cast<SoundCursor*>(user);
  if (whence & AVSEEK_SIZE) return cursor->size();
  return cursor->seek(offset, whence & ~AVSEEK_FORCE) ? cursor->at() : AVERROR(EINVAL);
}

int refuse_open(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) { return AVERROR(EPERM); }

Speaker speaker(AVChannel place) {
  switch (place) {
    case AV_CHAN_FRONT_CENTER:
      return Speaker::Centre;
    case AV_CHAN_FRONT_LEFT:
    case AV_CHAN_FRONT_RIGHT:
    case AV_CHAN_FRONT_LEFT_OF_CENTER:
    case AV_CHAN_FRONT_RIGHT_OF_CENTER:
      return Speaker::Front;
    case AV_CHAN_BACK_CENTER:
      return Speaker::BackCentre;
    case AV_CHAN_BACK_LEFT:
    case AV_CHAN_BACK_RIGHT:
    case AV_CHAN_SIDE_LEFT:
    case AV_CHAN_SIDE_RIGHT:
      return Speaker::Surround;
    case AV_CHAN_LOW_FREQUENCY:
      return Speaker::Bass;
    default:
      return Speaker::Other;
  }
}

// The value of sample i of one plane, −1 to 1.
template <class T>
float to_float(const uint8_t* plane, size_t i) {
  T v;
  std::memcpy(&v, plane + i * sizeof(T), sizeof(T));
  if constexpr (std::is_same_v<T, uint8_t>) return (static_cast<float>(v) - 128.0f) / 128.0f;
  if constexpr (std::is_integral_v<T>)
    return static_cast<float>(static_cast<double>(v) /
                              (static_cast<double>(std::numeric_limits<T>::max()) + 1));
  return static_cast<float>(v);
}

using Convert = float (*)(const uint8_t*, size_t);

Convert converter(int format) {
  switch (format) {
    case AV_SAMPLE_FMT_U8:
    case AV_SAMPLE_FMT_U8P:
      return to_float<uint8_t>;
    case AV_SAMPLE_FMT_S16:
    case AV_SAMPLE_FMT_S16P:
      return to_float<int16_t>;
    case AV_SAMPLE_FMT_S32:
    case AV_SAMPLE_FMT_S32P:
      return to_float<int32_t>;
    case AV_SAMPLE_FMT_S64:
    case AV_SAMPLE_FMT_S64P:
      return to_float<int64_t>;
    case AV_SAMPLE_FMT_FLT:
    case AV_SAMPLE_FMT_FLTP:
      return to_float<float>;
    case AV_SAMPLE_FMT_DBL:
    case AV_SAMPLE_FMT_DBLP:
      return to_float<double>;
    default:
      return nullptr;
  }
}

class LibavDecoder : public SoundDecoder {
 public:
  explicit LibavDecoder(std::shared_ptr<const SoundBytes> bytes)
      : av_(libav(bytes->name)), bytes_(std::move(bytes)), cursor_(bytes_) {
    try {
      open();
    } catch (...) {
      close();
      throw;
    }
  }
  ~LibavDecoder() override { close(); }

  size_t read(std::span<float> out) override {
    const auto c = static_cast<size_t>(channels);
    size_t done = 0;
    while (done + c <= out.size()) {
      if (at_ == count_ && !next_frame()) break;
      const size_t n = std::min((out.size() - done) / c, count_ - at_);
      for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < c; k++)
          out[done + i * c + k] = planar_ ? convert_(frame_->extended_data[k], at_ + i)
                                          : convert_(frame_->extended_data[0], (at_ + i) * c + k);
      done += n * c;
      at_ += n;
    }
    return done;
  }

 private:
  Error unreadable(int code, const char* what) const {
    char text[AV_ERROR_MAX_STRING_SIZE] = {};
    av_.av_strerror(code, text, sizeof text);
    // EINVAL: a format that is known but not allowed.
    if (code == AVERROR_DEMUXER_NOT_FOUND || code == AVERROR_INVALIDDATA || code == AVERROR(EINVAL))
      return error(ErrorKind::InvalidFile, "{}: found no sound in a format that is known", bytes_->name)
          .advise("give a recording (WAV, FLAC, OGG, MP3, M4A, WebM …), whole and as it was written");
    return error(ErrorKind::InvalidFile, "{}: {}: {}", bytes_->name, what, text)
        .advise("the recording is damaged or of a kind that cannot be read; convert it to WAV or FLAC");
  }

  void open() {
    auto* buffer = static_cast<uint8_t*>(av_.av_malloc(kProbe));
    if (buffer) io_ = av_.avio_alloc_context(buffer, kProbe, 0, &cursor_, cursor_read, nullptr, cursor_seek);
    if (!io_ && buffer) av_.av_freep(&buffer);
    input_ = av_.avformat_alloc_context();
    packet_ = av_.av_packet_alloc();
    frame_ = av_.av_frame_alloc();
    if (!io_ || !input_ || !packet_ || !frame_)
      throw error(ErrorKind::OutOfMemory, "no memory to read {}", bytes_->name);
    input_->pb = io_;
    input_->flags |= AVFMT_FLAG_CUSTOM_IO;
    input_->io_open = refuse_open;
    AVDictionary* options = nullptr;
    av_.av_dict_set(&options, "format_whitelist", kFormats, 0);
    av_.av_dict_set(&options, "codec_whitelist", kCodecs, 0);
    av_.av_dict_set(&options, "protocol_whitelist", "none", 0);
    int code = av_.avformat_open_input(&input_, nullptr, nullptr, &options);  // frees input_ when it fails
    av_.av_dict_free(&options);
    if (code < 0) throw unreadable(code, "the container cannot be read");
    code = av_.avformat_find_stream_info(input_, nullptr);
    if (code < 0) throw unreadable(code, "the streams cannot be read");
    stream_ = av_.av_find_best_stream(input_, AVMEDIA_TYPE_AUDIO, -1, -1, nullptr, 0);
    if (stream_ < 0)
      throw error(ErrorKind::InvalidFile, "{}: found no sound in it", bytes_->name)
          .advise("give a file with a sound track");
    for (unsigned i = 0; i < input_->nb_streams; i++)
      if (static_cast<int>(i) != stream_) input_->streams[i]->discard = AVDISCARD_ALL;
    const AVStream* stream = input_->streams[stream_];
    const AVCodec* codec = av_.avcodec_find_decoder(stream->codecpar->codec_id);
    codec_ = codec ? av_.avcodec_alloc_context3(codec) : nullptr;
    if (!codec_)
      throw error(ErrorKind::InvalidFile, "{}: found a sound track in a codec that cannot be decoded",
                  bytes_->name)
          .advise("convert the recording to WAV, FLAC, OGG or MP3");
    code = av_.avcodec_parameters_to_context(codec_, stream->codecpar);
    if (code >= 0) {
      codec_->pkt_timebase = stream->time_base;  // how much of the first and last frames is padding
      av_.av_dict_set(&options, "codec_whitelist", kCodecs, 0);
      av_.av_dict_set(&options, "threads", "1", 0);
      code = av_.avcodec_open2(codec_, codec, &options);
      av_.av_dict_free(&options);
    }
    if (code < 0) throw unreadable(code, "the sound track cannot be decoded");
    // The first frame says what the track is: headers of some codecs do not know.
    if (!next_frame())
      throw error(ErrorKind::InvalidFile, "{}: found no samples", bytes_->name)
          .advise("the recording is empty or damaged; play it to see whether anything is left");
    if (input_->duration > 0)
      frames = static_cast<int64_t>(static_cast<double>(input_->duration) / AV_TIME_BASE * rate);
  }

  void close() {
    av_.avcodec_free_context(&codec_);
    if (input_) av_.avformat_close_input(&input_);
    if (io_) av_.av_freep(&io_->buffer);
    av_.avio_context_free(&io_);
    av_.av_packet_free(&packet_);
    av_.av_frame_free(&frame_);
  }

  // Decodes until there are samples; false at the end. Packets that are damaged are left out.
  bool next_frame() {
    for (;;) {
      int code = av_.avcodec_receive_frame(codec_, frame_);
      if (code >= 0) {
        if (frame_->nb_samples <= 0) continue;
        accept_frame();
        return true;
      }
      if (code == AVERROR_EOF || ended_) return false;
      do {
        av_.av_packet_unref(packet_);
        code = av_.av_read_frame(input_, packet_);
      } while (code >= 0 && packet_->stream_index != stream_);
      ended_ = code < 0;
      av_.avcodec_send_packet(codec_, ended_ ? nullptr : packet_);
      av_.av_packet_unref(packet_);
    }
  }

  void accept_frame() {
    const AVChannelLayout& layout = frame_->ch_layout;
    if (rate == 0) {
      check_sound_shape(bytes_->name, frame_->sample_rate, layout.nb_channels);
      rate = frame_->sample_rate;
      channels = layout.nb_channels;
      std::vector<Speaker> speakers;
      if (layout.order == AV_CHANNEL_ORDER_NATIVE) {
        for (int i = 0; i < channels; i++)
          speakers.push_back(
              speaker(av_.av_channel_layout_channel_from_index(&layout, static_cast<unsigned>(i))));
        weights = mix_weights(speakers);
      }
    } else if (frame_->sample_rate != rate || layout.nb_channels != channels) {
      throw error(ErrorKind::InvalidFile, "{}: found {} Hz and {} channels after {} Hz and {} channels",
                  bytes_->name, frame_->sample_rate, layout.nb_channels, rate, channels)
          .advise("the recording changes on its way; convert it to WAV or FLAC first");
    }
    convert_ = converter(frame_->format);
    if (!convert_)
      throw error(ErrorKind::InvalidFile, "{}: found samples of a type that is not known ({})", bytes_->name,
                  frame_->format)
          .advise("convert the recording to WAV or FLAC");
    planar_ = av_.av_sample_fmt_is_planar(static_cast<AVSampleFormat>(frame_->format)) != 0;
    count_ = static_cast<size_t>(frame_->nb_samples);
    at_ = 0;
  }

  const Libav& av_;
  std::shared_ptr<const SoundBytes> bytes_;
  SoundCursor cursor_;
  AVIOContext* io_ = nullptr;
  AVFormatContext* input_ = nullptr;
  AVCodecContext* codec_ = nullptr;
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  int stream_ = -1;
  bool ended_ = false, planar_ = false;
  Convert convert_ = nullptr;
  size_t count_ = 0, at_ = 0;  // frames of frame_, and how many were taken
};

}  // namespace

std::unique_ptr<SoundDecoder> decode_with_libav(std::shared_ptr<const SoundBytes> bytes) {
  return std::make_unique<LibavDecoder>(std::move(bytes));
}

}  // namespace cyb
