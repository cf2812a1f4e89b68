// SPDX-License-Identifier: Apache-2.0
#include "media/picture/picture.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "media/picture/decode.h"

namespace cyb {
namespace {

constexpr uint64_t kMaxFile = uint64_t{1} << 28;

struct Magic {
  size_t at;
  std::string_view bytes;
  const char* what;
};
// Picture formats that are not read, and what stands in pictures' places by mistake.
constexpr Magic kOthers[] = {
    {0, {"II*\0", 4}, "a TIFF picture"},
    {0, {"MM\0*", 4}, "a TIFF picture"},
    {4, "ftypavif", "an AVIF picture"},
    {4, "ftypheic", "a HEIC picture"},
    {4, "ftypheix", "a HEIC picture"},
    {4, "ftypmif1", "a HEIF picture"},
    {4, "ftyp", "a video (MP4)"},
    {0, {"\xff\x0a", 2}, "a JPEG XL picture"},
    {0, {"\0\0\0\x0cJXL ", 8}, "a JPEG XL picture"},
    {0, {"\0\0\0\x0cjP  ", 8}, "a JPEG 2000 picture"},
    {0, "8BPS", "a Photoshop file"},
    {0, "%PDF", "a PDF document"},
    {0, {"\0\0\1\0", 4}, "an icon (ICO)"},
    {0, "version https://git-lfs", "a Git-LFS pointer (a text stub), not the picture itself"},
    {0, {"PK\3\4", 4}, "a ZIP archive"},
    {0, "GGUF", "a GGUF model"},
    {0, "[cyb]", "a .model file"},
};

bool starts_with(Bytes bytes, std::string_view magic, size_t at = 0) {
  return bytes.size() >= at + magic.size() && std::memcmp(bytes.data() + at, magic.data(), magic.size()) == 0;
}

Error no_picture(Bytes bytes) {
  const char* what = "no picture of a known kind";
  for (const Magic& magic : kOthers)
    if (starts_with(bytes, magic.bytes, magic.at)) {
      what = magic.what;
      break;
    }
  if (bytes.empty()) what = "an empty file";
  size_t i = 0;
  while (i < bytes.size() && i < 256 && std::isspace(bytes[i])) i++;
  const Bytes text = bytes.subspan(i);
  if (starts_with(text, "<svg") || starts_with(text, "<?xml")) what = "an SVG or XML text";
  if (starts_with(text, "<!") || starts_with(text, "<html") || starts_with(text, "<HTML"))
    what = "an HTML page";
  return error(ErrorKind::InvalidFile, "{}", what).advise("give a PNG, JPEG, WebP, GIF or BMP picture");
}

std::vector<uint8_t> read_stdin() {
  std::vector<uint8_t> out;
  uint8_t buffer[1 << 16];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) {
    if (out.size() + n > kMaxFile)
      throw error(ErrorKind::InvalidFile, "more than {} MB", kMaxFile >> 20).advise("give a smaller picture");
    out.insert(out.end(), buffer, buffer + n);
  }
  if (std::ferror(stdin)) throw error(ErrorKind::Io, "standard input cannot be read");
  return out;
}

}  // namespace

Picture decode_picture(Bytes bytes) {
  if (starts_with(bytes, {"\xff\xd8\xff", 3})) return decode_jpeg(bytes);
  if (starts_with(bytes, "\x89PNG\r\n\x1a\n")) return decode_png(bytes);
  if (starts_with(bytes, "RIFF") && starts_with(bytes, "WEBP", 8)) return decode_webp(bytes);
  if (starts_with(bytes, "GIF87a") || starts_with(bytes, "GIF89a")) return decode_gif(bytes);
  if (starts_with(bytes, "BM") && bytes.size() >= 26) return decode_bmp(bytes);
  throw no_picture(bytes);
}

Picture read_picture(const std::string& path) {
  try {
    if (path == "-") return decode_picture(read_stdin());
    const MappedFile file(path);
    if (file.size() > kMaxFile)
      throw error(ErrorKind::InvalidFile, "{} MB, more than {} MB", file.size() >> 20, kMaxFile >> 20)
          .advise("give a smaller picture");
    return decode_picture(file.bytes());
  } catch (const Error& e) {
    // The system's own errors name the file already.
    if (e.kind() == ErrorKind::Io && path != "-") throw;
    throw e.at(path == "-" ? "standard input" : path);
  }
}

Error damaged_picture(std::string_view format, std::string_view what) {
  return error(ErrorKind::InvalidFile, "{}: {}", format, what)
      .advise("the picture is damaged or incomplete; open it in a viewer and save it again");
}

void check_picture_size(std::string_view format, int64_t width, int64_t height, int64_t limit) {
  if (width <= 0 || height <= 0)
    throw damaged_picture(format, fmt::format("a size of {} × {} pixels", width, height));
  if (width > limit || height > limit / width)
    throw error(ErrorKind::InvalidFile, "{}: {} × {} pixels; up to {} million are read", format, width,
                height, limit / 1'000'000)
        .advise("make the picture smaller");
}

void over_white(const uint8_t* in, uint8_t* out) noexcept {
  const uint32_t a = in[3];
  for (int i = 0; i < 3; i++) {
    // Pillow blends with 7 more bits: 255 · a · 128 / 255 is a · 128 exactly.
    const uint32_t t = in[i] * (a * 128) + 255 * ((255 - a) * 128) + (0x80 << 7);
    out[i] = a == 0 ? 255 : static_cast<uint8_t>((((t >> 8) + t) >> 8) >> 7);
  }
}

PictureBuilder::PictureBuilder(std::string_view format, int64_t width, int64_t height, int orientation)
    : width_(width), height_(height), orientation_(orientation) {
  check_picture_size(format, width, height);
  picture_.width = static_cast<int>(orientation >= 5 ? height : width);
  picture_.height = static_cast<int>(orientation >= 5 ? width : height);
  picture_.rgb.resize(static_cast<size_t>(width * height * 3));
}

void PictureBuilder::set_pixel(int64_t x, int64_t y, const uint8_t* rgb) noexcept {
  const int64_t mx = width_ - 1 - x, my = height_ - 1 - y;
  int64_t u = x, v = y;
  switch (orientation_) {
    case 2:
      u = mx;
      break;
    case 3:
      u = mx, v = my;
      break;
    case 4:
      v = my;
      break;
    case 5:
      u = y, v = x;
      break;
    case 6:
      u = my, v = x;
      break;
    case 7:
      u = my, v = mx;
      break;
    case 8:
      u = y, v = mx;
      break;
    default:
      break;
  }
  std::memcpy(picture_.rgb.data() + (v * picture_.width + u) * 3, rgb, 3);
}

void PictureBuilder::set_row(int64_t y, const uint8_t* rgb) noexcept {
  if (orientation_ == 1) {
    std::memcpy(picture_.rgb.data() + y * width_ * 3, rgb, static_cast<size_t>(width_ * 3));
    return;
  }
  for (int64_t x = 0; x < width_; x++) set_pixel(x, y, rgb + x * 3);
}

void PictureBuilder::set_rgba_row(int64_t y, const uint8_t* rgba) noexcept {
  for (int64_t x = 0; x < width_; x++) {
    uint8_t rgb[3];
    over_white(rgba + x * 4, rgb);
    set_pixel(x, y, rgb);
  }
}

}  // namespace cyb
