// SPDX-License-Identifier: Apache-2.0
// What the decoders of the picture formats share. Internal to this folder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/error.h"
#include "media/picture/picture.h"

namespace cyb {

using Bytes = std::span<const uint8_t>;

Error damaged_picture(std::string_view format, std::string_view what);

// Throws where width × height is nothing or above `limit`.
void check_picture_size(std::string_view format, int64_t width, int64_t height,
                        int64_t limit = kMaxPicturePixels);

// Takes the pixels of a picture that is turned by its EXIF orientation (1–8) while they arrive, so that no
// second copy is needed. Rows and pixels are those of the file.
class PictureBuilder {
 public:
  PictureBuilder(std::string_view format, int64_t width, int64_t height, int orientation);

  void set_row(int64_t y, const uint8_t* rgb) noexcept;
  void set_rgba_row(int64_t y, const uint8_t* rgba) noexcept;  // over white
  void set_pixel(int64_t x, int64_t y, const uint8_t* rgb) noexcept;
  Picture take() { return std::move(picture_); }

 private:
  int64_t width_, height_;
  int orientation_;
  Picture picture_;
};

// One pixel over white, in Pillow's integers.
void over_white(const uint8_t* rgba, uint8_t* rgb) noexcept;

// 1–8; 1 where the file says nothing or nonsense.
int exif_orientation(Bytes exif);  // a TIFF header and what follows
int xmp_orientation(Bytes xmp);    // XML text; 0: nothing is said
int jpeg_orientation(Bytes jpeg);
int png_orientation(Bytes png);

Picture decode_jpeg(Bytes bytes);
Picture decode_png(Bytes bytes);
Picture decode_webp(Bytes bytes);
Picture decode_gif(Bytes bytes);
Picture decode_bmp(Bytes bytes);

}  // namespace cyb
