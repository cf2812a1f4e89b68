// SPDX-License-Identifier: Apache-2.0
// Scaling of 8-bit pictures with Pillow's filters: the support grows with the factor, first along rows, then
// along columns, each pass rounded to 8 bits.
#pragma once

#include <cstdint>

#include "media/picture/picture.h"

namespace cyb {

// Pillow's numbers.
enum class ResizeFilter { nearest = 0, lanczos = 1, bilinear = 2, bicubic = 3, box = 4, hamming = 5 };

// Whose fixed-point weights: Pillow has 22 bits behind the point; torchvision as many as 16-bit weights
// allow, and its own rule for the nearest pixel. They differ by one level at most.
enum class ResizeArithmetic { pillow, torchvision };

// A part of the result.
struct ResizeWindow {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

Picture resize_picture(const Picture& picture, int64_t width, int64_t height, ResizeFilter filter,
                       ResizeArithmetic arithmetic = ResizeArithmetic::pillow);
// Only this part of the result is computed, however large the whole would be.
Picture resize_picture(const Picture& picture, int64_t width, int64_t height, const ResizeWindow& window,
                       ResizeFilter filter, ResizeArithmetic arithmetic = ResizeArithmetic::pillow);

}  // namespace cyb
