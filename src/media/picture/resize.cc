// SPDX-License-Identifier: Apache-2.0
#include "media/picture/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

#include "media/picture/decode.h"

namespace cyb {
namespace {

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double weight(ResizeFilter filter, double x) {
  switch (filter) {
    case ResizeFilter::box:
      return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
    case ResizeFilter::bilinear:
      x = std::abs(x);
      return x < 1.0 ? 1.0 - x : 0.0;
    case ResizeFilter::hamming:
      x = std::abs(x);
      if (x == 0.0) return 1.0;
      if (x >= 1.0) return 0.0;
      x *= std::numbers::pi;
      return std::sin(x) / x * (double{0.54f} + double{0.46f} * std::cos(x));  // Pillow's floats
    case ResizeFilter::bicubic: {
      constexpr double a = -0.5;
      x = std::abs(x);
      if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
      if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
      return 0.0;
    }
    case ResizeFilter::lanczos:
      return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
    case ResizeFilter::nearest:
      break;
  }
  return 0.0;
}

double support_of(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::box:
      return 0.5;
    case ResizeFilter::bicubic:
      return 2.0;
    case ResizeFilter::lanczos:
      return 3.0;
    default:
      return 1.0;
  }
}

// The weights of one axis: pixels [first, first + count) for every output of the window.
struct Taps {
  int64_t most = 0;  // weights an output
  int shift = 0;
  std::vector<int64_t> first, count;
  std::vector<int32_t> weights;
};

class TapMaker {
 public:
  TapMaker(int64_t in, int64_t out, ResizeFilter filter)
      : in_(in), filter_(filter), scale_(static_cast<double>(in) / static_cast<double>(out)) {
    filter_scale_ = std::max(scale_, 1.0);
    support_ = support_of(filter) * filter_scale_;
    values_.resize(static_cast<size_t>(most()));
  }
  int64_t most() const { return static_cast<int64_t>(std::ceil(support_)) * 2 + 1; }

  // The weights of output `x` are in values() then.
  void make(int64_t x) {
    const double center = (static_cast<double>(x) + 0.5) * scale_, inverse = 1.0 / filter_scale_;
    first = std::max<int64_t>(static_cast<int64_t>(center - support_ + 0.5), 0);
    count =
        std::max<int64_t>(std::min<int64_t>(static_cast<int64_t>(center + support_ + 0.5), in_) - first, 0);
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
      const double w = weight(filter_, (static_cast<double>(i + first) - center + 0.5) * inverse);
      values_[static_cast<size_t>(i)] = w;
      sum += w;
    }
    if (sum != 0)
      for (int64_t i = 0; i < count; i++) values_[static_cast<size_t>(i)] /= sum;
  }
  const std::vector<double>& values() const { return values_; }
  int64_t first = 0, count = 0;

 private:
  int64_t in_;
  ResizeFilter filter_;
  double scale_, filter_scale_ = 1, support_ = 1;
  std::vector<double> values_;
};

int torch_shift(TapMaker& maker, int64_t out) {
  double most = 0;
  // All outputs are looked at, but for absurd sizes, of which only a window is ever wanted.
  for (int64_t x = 0; x < std::min<int64_t>(out, 1 << 20); x++) {
    maker.make(x);
    for (int64_t i = 0; i < maker.count; i++) most = std::max(most, maker.values()[static_cast<size_t>(i)]);
  }
  int shift = 0;
  while (shift < 22 && static_cast<int>(0.5 + most * (1 << (shift + 1))) < (1 << 15)) shift++;
  return shift;
}

Taps make_taps(int64_t in, int64_t out, int64_t from, int64_t size, ResizeFilter filter,
               ResizeArithmetic arithmetic) {
  TapMaker maker(in, out, filter);
  Taps taps;
  taps.most = maker.most();
  taps.shift = arithmetic == ResizeArithmetic::pillow ? 22 : torch_shift(maker, out);
  taps.weights.resize(static_cast<size_t>(taps.most * size));
  const double unit = 1 << taps.shift;
  for (int64_t x = 0; x < size; x++) {
    maker.make(from + x);
    taps.first.push_back(maker.first);
    taps.count.push_back(maker.count);
    for (int64_t i = 0; i < maker.count; i++) {
      const double w = maker.values()[static_cast<size_t>(i)] * unit;
      taps.weights[static_cast<size_t>(x * taps.most + i)] = static_cast<int32_t>(w < 0 ? w - 0.5 : w + 0.5);
    }
  }
  return taps;
}

uint8_t rounded(int32_t sum, int shift) { return static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255)); }

// Outputs [from, to) of one row.
void filter_row(const uint8_t* in, const Taps& taps, int64_t from, int64_t to, uint8_t* out) {
  const int32_t half = 1 << (taps.shift - 1);
  for (int64_t x = from; x < to; x++, out += 3) {
    const int32_t* w = taps.weights.data() + x * taps.most;
    const uint8_t* p = in + taps.first[static_cast<size_t>(x)] * 3;
    int32_t r = half, g = half, b = half;
    for (int64_t i = 0, n = taps.count[static_cast<size_t>(x)]; i < n; i++, p += 3) {
      r += p[0] * w[i];
      g += p[1] * w[i];
      b += p[2] * w[i];
    }
    out[0] = rounded(r, taps.shift), out[1] = rounded(g, taps.shift), out[2] = rounded(b, taps.shift);
  }
}

// The columns of one output row; `rows(i)` is the i-th input row of the filter.
template <class Rows>
void filter_columns(const Rows& rows, const int32_t* w, int64_t count, int64_t bytes, int shift,
                    int32_t* sums, uint8_t* out) {
  std::fill(sums, sums + bytes, 1 << (shift - 1));
  for (int64_t i = 0; i < count; i++) {
    const uint8_t* row = rows(i);
    for (int64_t c = 0; c < bytes; c++) sums[c] += row[c] * w[i];
  }
  for (int64_t c = 0; c < bytes; c++) out[c] = rounded(sums[c], shift);
}

// Strips of columns, so narrow that the rows under the filter stay small even for a picture of millions of
// rows.
void filter_picture(const Picture& in, const Taps& across, const Taps& down, Picture* out) {
  constexpr int64_t kStripBytes = 1 << 22;
  const int64_t strip = std::clamp<int64_t>(kStripBytes / (down.most * 3), 1, out->width);
  std::vector<uint8_t> ring(static_cast<size_t>(down.most * strip * 3));
  std::vector<int32_t> sums(static_cast<size_t>(strip * 3));
  for (int64_t from = 0; from < out->width; from += strip) {
    const int64_t to = std::min<int64_t>(from + strip, out->width), bytes = (to - from) * 3;
    int64_t next = 0;
    for (int64_t y = 0; y < out->height; y++) {
      const int64_t first = down.first[static_cast<size_t>(y)], count = down.count[static_cast<size_t>(y)];
      for (next = std::max(next, first); next < first + count; next++)
        filter_row(in.rgb.data() + next * in.width * 3, across, from, to,
                   ring.data() + next % down.most * strip * 3);
      filter_columns([&](int64_t i) { return ring.data() + (first + i) % down.most * strip * 3; },
                     down.weights.data() + y * down.most, count, bytes, down.shift, sums.data(),
                     out->rgb.data() + (y * out->width + from) * 3);
    }
  }
}

// Columns before rows.
void filter_down_first(const Picture& in, const Taps& across, const Taps& down, Picture* out) {
  const int64_t from = across.first.front(), to = across.first.back() + across.count.back(),
                bytes = (to - from) * 3;
  std::vector<uint8_t> row(static_cast<size_t>(in.width) * 3);
  std::vector<int32_t> sums(static_cast<size_t>(bytes));
  for (int64_t y = 0; y < out->height; y++) {
    const int64_t first = down.first[static_cast<size_t>(y)];
    filter_columns([&](int64_t i) { return in.rgb.data() + ((first + i) * in.width + from) * 3; },
                   down.weights.data() + y * down.most, down.count[static_cast<size_t>(y)], bytes, down.shift,
                   sums.data(), row.data() + from * 3);
    filter_row(row.data(), across, 0, out->width, out->rgb.data() + y * out->width * 3);
  }
}

std::vector<int64_t> nearest_pixels(int64_t in, int64_t out, int64_t from, int64_t size,
                                    ResizeArithmetic arithmetic) {
  std::vector<int64_t> pixels;
  if (arithmetic == ResizeArithmetic::torchvision) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    for (int64_t x = from; x < from + size; x++)
      pixels.push_back(
          std::min<int64_t>(static_cast<int64_t>((static_cast<float>(x) + 0.5f) * scale), in - 1));
    return pixels;
  }
  // Pillow adds the step up, with its rounding.
  const double step = static_cast<double>(in) / static_cast<double>(out);
  double at = step * 0.5;
  int64_t x = 0;
  if (from > 1 << 24) x = from, at += step * static_cast<double>(from);
  for (; x < from + size; x++, at += step)
    if (x >= from) pixels.push_back(std::clamp<int64_t>(static_cast<int64_t>(at), 0, in - 1));
  return pixels;
}

// A picture of one pixel by millions asks for more work than it can be worth.
void check_work(const Picture& in, int64_t width, int64_t height, const ResizeWindow& window, double support,
                bool down_first) {
  constexpr double kMaxWork = 4e9;
  const auto taps = [support](int64_t from, int64_t to) {
    const double scale = std::max(1.0, static_cast<double>(from) / static_cast<double>(to));
    return std::min(2 * support * scale + 1, static_cast<double>(from));
  };
  const auto w = static_cast<double>(window.width), h = static_cast<double>(window.height);
  const double x_taps = taps(in.width, width), y_taps = taps(in.height, height);
  const double columns = std::min<double>(w * x_taps, in.width),
               rows = std::min<double>(h * y_taps, in.height);
  const double work = down_first ? h * y_taps * columns + w * h * x_taps : rows * w * x_taps + w * h * y_taps;
  if (work > kMaxWork)
    throw error(ErrorKind::InvalidFile, "a picture of {} × {} pixels is too long for {} × {}", in.width,
                in.height, width, height)
        .advise("cut or scale the picture first");
}

}  // namespace

Picture resize_picture(const Picture& picture, int64_t width, int64_t height, ResizeFilter filter,
                       ResizeArithmetic arithmetic) {
  return resize_picture(picture, width, height, {0, 0, width, height}, filter, arithmetic);
}

Picture resize_picture(const Picture& picture, int64_t width, int64_t height, const ResizeWindow& window,
                       ResizeFilter filter, ResizeArithmetic arithmetic) {
  check_picture_size("the result", window.width, window.height);
  Picture out{static_cast<int>(window.width), static_cast<int>(window.height), {}};
  out.rgb.resize(static_cast<size_t>(window.width * window.height * 3));
  const bool same_width = width == picture.width, same_height = height == picture.height;
  if (filter == ResizeFilter::nearest || (same_width && same_height)) {
    const auto xs = nearest_pixels(picture.width, width, window.x, window.width, arithmetic);
    const auto ys = nearest_pixels(picture.height, height, window.y, window.height, arithmetic);
    uint8_t* to = out.rgb.data();
    for (const int64_t y : ys)
      for (const int64_t x : xs) {
        std::memcpy(to, picture.rgb.data() + (y * picture.width + x) * 3, 3);
        to += 3;
      }
    return out;
  }
  // Pillow starts with the columns where the height shrinks by more than twice as much as the width.
  const bool down_first = arithmetic == ResizeArithmetic::pillow && height < picture.height &&
                          picture.height - height > 2 * (picture.width - width);
  check_work(picture, width, height, window, support_of(filter), down_first);
  const Taps across = make_taps(picture.width, width, window.x, window.width, filter, arithmetic),
             down = make_taps(picture.height, height, window.y, window.height, filter, arithmetic);
  down_first ? filter_down_first(picture, across, down, &out) : filter_picture(picture, across, down, &out);
  return out;
}

}  // namespace cyb
