// SPDX-License-Identifier: Apache-2.0
// Windows and OS/2 bitmaps: palettes, 16, 24 and 32 bits with or without masks, run lengths, either
// direction.
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "media/picture/decode.h"

namespace cyb {
namespace {

class BmpReader {
 public:
  explicit BmpReader(Bytes bytes) : bytes_(bytes) {}

  Picture read() {
    read_header();
    check_picture_size("BMP", width_, height_);
    if (bits_ <= 8) read_palette();
    PictureBuilder builder("BMP", width_, height_, 1);
    compression_ == 1 || compression_ == 2 ? read_runs(builder) : read_rows(builder);
    return builder.take();
  }

 private:
  uint32_t number(size_t at, int size) const {
    if (at > bytes_.size() || bytes_.size() - at < static_cast<size_t>(size))
      throw damaged_picture("BMP", "the file ends too early");
    uint32_t v = 0;
    for (int i = 0; i < size; i++) v |= static_cast<uint32_t>(bytes_[at + static_cast<size_t>(i)]) << 8 * i;
    return v;
  }

  void read_header() {
    data_ = number(10, 4);
    header_ = number(14, 4);
    if (header_ == 12) {
      width_ = number(18, 2), height_ = number(20, 2), bits_ = static_cast<int>(number(24, 2));
      palette_entry_ = 3;
    } else if (header_ >= 40 && header_ <= 124) {
      width_ = static_cast<int32_t>(number(18, 4)), height_ = static_cast<int32_t>(number(22, 4));
      bits_ = static_cast<int>(number(28, 2)), compression_ = number(30, 4), colors_ = number(46, 4);
      top_down_ = height_ < 0;
      height_ = std::abs(height_);
    } else {
      throw damaged_picture("BMP", fmt::format("a header of {} bytes", header_));
    }
    const bool runs = (compression_ == 1 && bits_ == 8) || (compression_ == 2 && bits_ == 4);
    const bool masks = (compression_ == 3 || compression_ == 6) && (bits_ == 16 || bits_ == 32);
    const bool plain = compression_ == 0 && (bits_ == 1 || bits_ == 2 || bits_ == 4 || bits_ == 8 ||
                                             bits_ == 16 || bits_ == 24 || bits_ == 32);
    if (!runs && !masks && !plain)
      throw error(ErrorKind::InvalidFile, "BMP: {} bits a pixel with the compression {}", bits_, compression_)
          .advise("save the picture as PNG");
    if (bits_ == 16) masks_ = {0x7c00, 0x3e0, 0x1f, 0};
    if (bits_ == 32) masks_ = {0xff0000, 0xff00, 0xff, 0};
    if (masks)
      for (size_t i = 0; i < 3; i++) masks_[i] = number(54 + i * 4, 4);
    if (masks && (compression_ == 6 || header_ >= 56)) masks_[3] = number(66, 4);
    for (const uint32_t mask : masks_)
      if (mask && !std::has_single_bit((uint64_t{mask} >> std::countr_zero(mask)) + 1))
        throw damaged_picture("BMP", fmt::format("the colour mask {:x}", mask));
  }

  void read_palette() {
    size_t at = 14 + header_;
    const uint32_t most = 1u << bits_;
    if (colors_ == 0 || colors_ > most) colors_ = most;
    // The palette may be shorter than it says where the pixels begin before its end.
    for (uint32_t i = 0; i < colors_ && (data_ <= at || data_ - at >= palette_entry_);
         i++, at += palette_entry_)
      for (size_t c = 0; c < 3; c++) palette_[i][c] = static_cast<uint8_t>(number(at + 2 - c, 1));
  }

  int64_t line(int64_t y) const { return top_down_ ? y : height_ - 1 - y; }

  // A colour of n bits as 8.
  static uint8_t channel(uint32_t pixel, uint32_t mask) {
    if (mask == 0) return 0;
    const int shift = std::countr_zero(mask), bits = std::bit_width(mask >> shift);
    const uint32_t v = (pixel & mask) >> shift;
    return static_cast<uint8_t>(bits >= 8 ? v >> (bits - 8) : v * 255 / ((1u << bits) - 1));
  }

  void read_rows(PictureBuilder& builder) {
    const int64_t stride = (width_ * bits_ + 31) / 32 * 4;
    // The last row may end without its padding.
    const int64_t needed = stride * (height_ - 1) + (width_ * bits_ + 7) / 8;
    if (data_ > bytes_.size() || needed > static_cast<int64_t>(bytes_.size() - data_))
      throw damaged_picture("BMP", "the file ends too early");
    std::vector<uint8_t> rgb(static_cast<size_t>(width_ * 3));
    for (int64_t y = 0; y < height_; y++) {
      convert_row(bytes_.data() + data_ + y * stride, rgb.data());
      builder.set_row(line(y), rgb.data());
    }
  }

  void convert_row(const uint8_t* in, uint8_t* rgb) const {
    for (int64_t x = 0; x < width_; x++, rgb += 3) {
      if (bits_ <= 8) {
        const int64_t bit = x * bits_;
        const int index = in[bit / 8] >> (8 - bits_ - bit % 8) & ((1 << bits_) - 1);
        std::memcpy(rgb, palette_[static_cast<size_t>(index)].data(), 3);
      } else if (bits_ == 24) {
        rgb[0] = in[x * 3 + 2], rgb[1] = in[x * 3 + 1], rgb[2] = in[x * 3];
      } else {
        uint32_t pixel = 0;
        std::memcpy(&pixel, in + x * bits_ / 8, static_cast<size_t>(bits_ / 8));
        uint8_t rgba[4];
        for (size_t c = 0; c < 4; c++) rgba[c] = channel(pixel, masks_[c]);
        masks_[3] ? over_white(rgba, rgb) : static_cast<void>(std::memcpy(rgb, rgba, 3));
      }
    }
  }

  // Run lengths: pairs of count and value, or 0 and what to do.
  void read_runs(PictureBuilder& builder) {
    size_t at = data_;
    int64_t x = 0, y = 0;
    const auto set = [&](uint32_t index) {
      if (x < width_) builder.set_pixel(x, line(y), palette_[index].data());
      x++;
    };
    for (int64_t r = 0; r < height_; r++)  // what no run covers is of the first colour
      for (int64_t c = 0; c < width_; c++) builder.set_pixel(c, r, palette_[0].data());
    while (y < height_) {
      const uint32_t count = number(at, 1), value = number(at + 1, 1);
      at += 2;
      if (count > 0) {
        for (uint32_t i = 0; i < count && x < width_; i++)
          set(bits_ == 8 ? value : i % 2 ? value & 15 : value >> 4);
      } else if (value == 0) {
        x = 0, y++;
      } else if (value == 1) {
        return;
      } else if (value == 2) {
        x += number(at, 1), y += number(at + 1, 1);
        at += 2;
      } else {
        const size_t size = bits_ == 8 ? value : (value + 1) / 2;
        if (at > bytes_.size() || bytes_.size() - at < size)
          throw damaged_picture("BMP", "the file ends too early");
        for (uint32_t i = 0; i < value; i++) {
          const uint32_t byte = bytes_[at + (bits_ == 8 ? i : i / 2)];
          set(bits_ == 8 ? byte : i % 2 ? byte & 15 : byte >> 4);
        }
        at += size + size % 2;
      }
    }
  }

  Bytes bytes_;
  size_t data_ = 0, header_ = 0, palette_entry_ = 4;
  int64_t width_ = 0, height_ = 0;
  int bits_ = 0;
  uint32_t compression_ = 0, colors_ = 0;
  bool top_down_ = false;
  std::array<uint32_t, 4> masks_{};
  std::array<std::array<uint8_t, 3>, 256> palette_{};
};

}  // namespace

Picture decode_bmp(Bytes bytes) { return BmpReader(bytes).read(); }

}  // namespace cyb
