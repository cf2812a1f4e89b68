// SPDX-License-Identifier: Apache-2.0
// The first frame of a GIF.
#include <algorithm>
#include <array>
#include <cstring>

#include "media/picture/decode.h"

namespace cyb {
namespace {

class GifReader {
 public:
  explicit GifReader(Bytes bytes) : bytes_(bytes) {}

  Picture read() {
    at_ = 6;
    int64_t width = u16(), height = u16();
    const int flags = u8();
    at_ += 2;  // background, aspect
    if (flags & 0x80) read_palette(flags);
    for (;;) {
      const int kind = u8();
      if (kind == 0x21) {
        read_extension();
      } else if (kind == 0x2c) {
        return read_frame(width, height);
      } else if (kind == 0x3b) {
        throw damaged_picture("GIF", "no picture in it");
      }
      // Anything else between blocks is skipped, as in the reference.
    }
  }

 private:
  int u8() {
    if (at_ >= bytes_.size()) throw damaged_picture("GIF", "the file ends too early");
    return bytes_[at_++];
  }
  int u16() {
    const int low = u8();
    return low | u8() << 8;
  }
  void skip(size_t count) {
    if (count > bytes_.size() - at_) throw damaged_picture("GIF", "the file ends too early");
    at_ += count;
  }

  void read_palette(int flags) {
    palette_ = {};
    const size_t size = size_t{3} << ((flags & 7) + 1), from = at_;
    skip(size);
    std::memcpy(palette_.data(), bytes_.data() + from, size);
    has_palette_ = true;
  }

  void read_extension() {
    const int label = u8();
    for (int size; (size = u8()) != 0;) {
      const size_t from = at_;
      skip(static_cast<size_t>(size));
      if (label == 0xf9 && size >= 4) transparent_ = bytes_[from] & 1 ? bytes_[from + 3] : -1;
    }
  }

  Picture read_frame(int64_t width, int64_t height) {
    const int64_t x0 = u16(), y0 = u16(), w = u16(), h = u16();
    const int flags = u8();
    if (flags & 0x80) read_palette(flags);
    if (!has_palette_)
      for (size_t i = 0; i < 256; i++)
        palette_[i * 3] = palette_[i * 3 + 1] = palette_[i * 3 + 2] = static_cast<uint8_t>(i);
    if (transparent_ >= 0) std::memset(&palette_[static_cast<size_t>(transparent_) * 3], 255, 3);
    if (w == 0 || h == 0) throw damaged_picture("GIF", fmt::format("a frame of {} × {} pixels", w, h));
    width = std::max(width, x0 + w), height = std::max(height, y0 + h);
    PictureBuilder builder("GIF", width, height, 1);
    fill_outside(builder, width, height, x0, y0, w, h);
    std::vector<uint8_t> row(static_cast<size_t>(width * 3));
    fill(row.data(), width);
    start_codes();
    constexpr int kFirst[] = {0, 4, 2, 1}, kStep[] = {8, 8, 4, 2};
    const bool interlaced = flags & 0x40;
    std::vector<uint8_t> line(static_cast<size_t>(w));
    for (int pass = 0; pass < (interlaced ? 4 : 1); pass++)
      for (int64_t y = interlaced ? kFirst[pass] : 0; y < h; y += interlaced ? kStep[pass] : 1) {
        read_line(line);
        for (int64_t x = 0; x < w; x++)
          std::memcpy(&row[static_cast<size_t>((x0 + x) * 3)],
                      &palette_[line[static_cast<size_t>(x)] * size_t{3}], 3);
        builder.set_row(y0 + y, row.data());
      }
    return builder.take();
  }

  // What the frame does not cover is transparent, or of the first colour.
  void fill(uint8_t* row, int64_t width) const {
    const size_t index = transparent_ >= 0 ? static_cast<size_t>(transparent_) : 0;
    for (int64_t x = 0; x < width; x++) std::memcpy(row + x * 3, &palette_[index * 3], 3);
  }
  void fill_outside(PictureBuilder& builder, int64_t width, int64_t height, int64_t, int64_t y0, int64_t,
                    int64_t h) const {
    if (y0 == 0 && h == height) return;
    std::vector<uint8_t> row(static_cast<size_t>(width * 3));
    fill(row.data(), width);
    for (int64_t y = 0; y < height; y++)
      if (y < y0 || y >= y0 + h) builder.set_row(y, row.data());
  }

  // --- LZW: codes of a growing number of bits, each the code before it and one more pixel.
  static constexpr int kMaxBits = 12, kMaxCodes = 1 << kMaxBits;

  void start_codes() {
    const int bits = u8();
    if (bits < 1 || bits > 11) throw damaged_picture("GIF", fmt::format("codes of {} bits", bits));
    clear_ = 1 << bits;
    reset();
  }
  void reset() {
    bits_ = 0;
    while ((1 << bits_) <= clear_) bits_++;
    next_ = clear_ + 2;
    last_ = -1;
  }

  int read_code() {
    while (available_ < bits_) {
      if (block_ == 0) {
        block_ = u8();
        if (block_ == 0) throw damaged_picture("GIF", "its pixels end too early");
      }
      buffer_ |= static_cast<uint32_t>(u8()) << available_;
      block_--;
      available_ += 8;
    }
    const int code = static_cast<int>(buffer_ & ((1u << bits_) - 1));
    buffer_ >>= bits_;
    available_ -= bits_;
    return code;
  }

  // The next pixels, last first, onto the stack.
  void read_string() {
    int code = read_code();
    while (code == clear_) {
      reset();
      code = read_code();
    }
    if (code == clear_ + 1) throw damaged_picture("GIF", "its pixels end too early");
    const bool after_clear = last_ < 0;
    if (after_clear ? code >= clear_ : code > next_ || (code == next_ && next_ >= kMaxCodes))
      throw damaged_picture(
          "GIF", fmt::format("the code {} where {} is the highest", code, after_clear ? clear_ - 1 : next_));
    const int shown = code;
    if (code == next_) {  // the string being defined: the last one and its own first pixel
      stack_[depth_++] = static_cast<uint8_t>(first_);
      code = last_;
    }
    for (; code >= clear_; code = prefix_[static_cast<size_t>(code)])
      stack_[depth_++] = suffix_[static_cast<size_t>(code)];
    first_ = code;
    stack_[depth_++] = static_cast<uint8_t>(code);
    if (!after_clear && next_ < kMaxCodes) {
      prefix_[static_cast<size_t>(next_)] = static_cast<uint16_t>(last_);
      suffix_[static_cast<size_t>(next_)] = static_cast<uint8_t>(first_);
      next_++;
      if (next_ == 1 << bits_ && bits_ < kMaxBits) bits_++;
    }
    last_ = shown;
  }

  void read_line(std::vector<uint8_t>& line) {
    for (uint8_t& pixel : line) {
      if (depth_ == 0) read_string();
      pixel = stack_[--depth_];
    }
  }

  Bytes bytes_;
  size_t at_ = 0;
  std::array<uint8_t, 768> palette_{};
  bool has_palette_ = false;
  int transparent_ = -1;

  int clear_ = 0, bits_ = 0, next_ = 0, last_ = -1, first_ = 0;
  uint32_t buffer_ = 0;
  int available_ = 0, block_ = 0;
  size_t depth_ = 0;
  std::array<uint8_t, kMaxCodes + 2> stack_{};
  std::array<uint16_t, kMaxCodes> prefix_{};
  std::array<uint8_t, kMaxCodes> suffix_{};
};

}  // namespace

Picture decode_gif(Bytes bytes) { return GifReader(bytes).read(); }

}  // namespace cyb
