// SPDX-License-Identifier: Apache-2.0
// Pictures: PNG, JPEG, WebP, GIF (first frame) and BMP, told apart by content, as 8-bit RGB. EXIF orientation
// is applied, transparency laid over white, 16 bits cut to 8, CMYK converted: the pixels are those of Pillow.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cyb {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // row after row, 3 bytes a pixel
};

// Larger pictures are refused before memory is taken for them.
constexpr int64_t kMaxPicturePixels = int64_t{1} << 26;

// A file; "-" is standard input. Throws InvalidFile for what is no picture, is damaged or too large.
Picture read_picture(const std::string& path);
Picture decode_picture(std::span<const uint8_t> bytes);

}  // namespace cyb
