// SPDX-License-Identifier: Apache-2.0
// WebP through libwebp: lossy and lossless, with alpha, the first frame of an animation.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "media/picture/decode.h"

namespace cyb {
namespace {

// What the library holds itself, besides the result, for lossless pictures.
constexpr int64_t kMaxLossless = kMaxPicturePixels / 2;

struct Demuxer {
  WebPDemuxer* demuxer = nullptr;
  WebPIterator frame{};
  WebPChunkIterator chunk{};
  ~Demuxer() {
    WebPDemuxReleaseChunkIterator(&chunk);
    WebPDemuxReleaseIterator(&frame);
    WebPDemuxDelete(demuxer);
  }
};

Bytes chunk_of(Demuxer& file, const char* name) {
  WebPDemuxReleaseChunkIterator(&file.chunk);
  file.chunk = {};
  if (!WebPDemuxGetChunk(file.demuxer, name, 1, &file.chunk)) return {};
  return {file.chunk.chunk.bytes, file.chunk.chunk.size};
}

int orientation_of(Demuxer& file) {
  const int exif = exif_orientation(chunk_of(file, "EXIF"));
  if (exif != 1) return exif;
  const int xmp = xmp_orientation(chunk_of(file, "XMP "));
  return xmp >= 1 && xmp <= 8 ? xmp : 1;
}

const char* reason(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "no memory for its pixels";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that is not supported";
    case VP8_STATUS_NOT_ENOUGH_DATA:
      return "the file ends too early";
    default:
      return "no valid pixel data";
  }
}

// The frame's pixels, `channels` bytes each, row after row.
std::vector<uint8_t> decode_frame(const WebPIterator& frame, int channels) {
  std::vector<uint8_t> pixels(static_cast<size_t>(frame.width) * static_cast<size_t>(frame.height) *
                              static_cast<size_t>(channels));
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config))
    throw error(ErrorKind::OutOfMemory, "WebP: the library's version differs");
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels.data();
  config.output.u.RGBA.stride = frame.width * channels;
  config.output.u.RGBA.size = pixels.size();
  const VP8StatusCode status = WebPDecode(frame.fragment.bytes, frame.fragment.size, &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) throw damaged_picture("WebP", reason(status));
  return pixels;
}

}  // namespace

Picture decode_webp(Bytes bytes) {
  Demuxer file;
  const WebPData data{bytes.data(), bytes.size()};
  WebPDemuxState state{};
  file.demuxer = WebPDemuxPartial(&data, &state);
  if (!file.demuxer || state != WEBP_DEMUX_DONE)
    throw damaged_picture("WebP",
                          state == WEBP_DEMUX_PARSE_ERROR ? "no valid file" : "the file ends too early");
  const int64_t width = WebPDemuxGetI(file.demuxer, WEBP_FF_CANVAS_WIDTH),
                height = WebPDemuxGetI(file.demuxer, WEBP_FF_CANVAS_HEIGHT);
  check_picture_size("WebP", width, height);
  if (!WebPDemuxGetFrame(file.demuxer, 1, &file.frame)) throw damaged_picture("WebP", "no picture in it");
  const WebPIterator& frame = file.frame;
  WebPBitstreamFeatures features;
  if (const VP8StatusCode s = WebPGetFeatures(frame.fragment.bytes, frame.fragment.size, &features);
      s != VP8_STATUS_OK)
    throw damaged_picture("WebP", reason(s));
  // A frame that says another size than its place, or lies outside of the canvas, is damaged.
  if (features.width != frame.width || features.height != frame.height || frame.x_offset < 0 ||
      frame.y_offset < 0 || frame.x_offset + int64_t{frame.width} > width ||
      frame.y_offset + int64_t{frame.height} > height)
    throw damaged_picture("WebP", "sizes that contradict each other");
  const int orientation = orientation_of(file);
  const bool alpha = features.has_alpha, whole = frame.width == width && frame.height == height;
  if (features.format == 2 || alpha || orientation != 1 || !whole)
    check_picture_size("WebP", width, height, kMaxLossless);

  std::vector<uint8_t> pixels = decode_frame(frame, alpha ? 4 : 3);
  const int64_t count = int64_t{frame.width} * frame.height;
  if (alpha) {
    for (int64_t i = 0; i < count; i++)
      over_white(&pixels[static_cast<size_t>(i * 4)], &pixels[static_cast<size_t>(i * 3)]);
    pixels.resize(static_cast<size_t>(count * 3));
  }
  if (orientation == 1 && whole) return {frame.width, frame.height, std::move(pixels)};
  PictureBuilder builder("WebP", width, height, orientation);
  std::vector<uint8_t> row(static_cast<size_t>(width * 3), 255);  // the canvas is transparent
  for (int64_t y = 0; y < height; y++) {
    const int64_t from = y - frame.y_offset;
    if (from >= 0 && from < frame.height)
      std::memcpy(row.data() + frame.x_offset * 3, pixels.data() + from * frame.width * 3,
                  static_cast<size_t>(frame.width) * 3);
    else
      std::fill(row.begin(), row.end(), uint8_t{255});
    builder.set_row(y, row.data());
  }
  return builder.take();
}

}  // namespace cyb
