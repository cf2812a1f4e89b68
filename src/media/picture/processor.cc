// SPDX-License-Identifier: Apache-2.0
#include "media/picture/processor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "media/picture/decode.h"

namespace cyb {
namespace {

constexpr int64_t kMaxEdge = 1 << 14;

int64_t edge(const Config& config, const std::string& path) {
  const int64_t n = config.integer(path);
  if (n < 1 || n > kMaxEdge) throw config.invalid(path, "{} is no edge of 1 to {} pixels", n, kMaxEdge);
  return n;
}

// int(a · b / c) of the reference, in its double precision.
int64_t scaled(int64_t a, int64_t b, int64_t c) {
  return static_cast<int64_t>(static_cast<double>(a * b) / static_cast<double>(c));
}

}  // namespace

PictureProcessor::PictureProcessor(const Config& config) {
  const std::string arithmetic = config.text("arithmetic");
  if (arithmetic != "torchvision" && arithmetic != "pillow")
    throw config.invalid("arithmetic", "'{}' is neither torchvision nor pillow", arithmetic);
  arithmetic_ = arithmetic == "pillow" ? ResizeArithmetic::pillow : ResizeArithmetic::torchvision;
  if (config.has("max_num_patches")) {
    patch_ = edge(config, "patch_size");
    max_patches_ = edge(config, "max_num_patches");
  }
  if (config.boolean("do_resize")) {
    const int64_t filter = config.integer("resample");
    if (filter < 0 || filter > 5) throw config.invalid("resample", "{} is no filter (0 to 5)", filter);
    filter_ = static_cast<ResizeFilter>(filter);
    if (!in_patches()) read_size(config);
  }
  if (!in_patches() && config.boolean("do_center_crop")) {
    crop_ = true;
    crop_size_ = {edge(config, "crop_size.width"), edge(config, "crop_size.height")};
  }
  read_values(config);
}

void PictureProcessor::read_size(const Config& config) {
  if (config.has("size.shortest_edge")) {
    rule_ = config.has("size.longest_edge") ? Rule::shortest_longest : Rule::shortest;
    size_a_ = edge(config, "size.shortest_edge");
    if (rule_ == Rule::shortest_longest) size_b_ = edge(config, "size.longest_edge");
  } else if (config.has("size.max_height")) {
    rule_ = Rule::within;
    size_a_ = edge(config, "size.max_height"), size_b_ = edge(config, "size.max_width");
  } else {
    rule_ = Rule::exact;
    size_a_ = edge(config, "size.height"), size_b_ = edge(config, "size.width");
  }
}

void PictureProcessor::read_values(const Config& config) {
  const bool rescale = config.boolean("do_rescale"), normalize = config.boolean("do_normalize");
  const double factor = rescale ? config.real("rescale_factor") : 1.0;
  if (!std::isfinite(factor) || factor <= 0)
    throw config.invalid("rescale_factor", "{} is no factor", factor);
  std::vector<double> mean, deviation;
  if (normalize) {
    mean = config.reals("image_mean"), deviation = config.reals("image_std");
    if (mean.size() != 3) throw config.invalid("image_mean", "{} values, not 3", mean.size());
    if (deviation.size() != 3) throw config.invalid("image_std", "{} values, not 3", deviation.size());
  }
  for (size_t c = 0; c < 3; c++)
    for (size_t i = 0; i < 256; i++) {
      auto v = static_cast<float>(i);
      // Pillow's path divides by 255 first; torchvision's scales mean and deviation instead.
      if (arithmetic_ == ResizeArithmetic::pillow && rescale) {
        v = factor == 1.0 / 255 ? v / 255.0f : v * static_cast<float>(factor);
        if (normalize) v = (v - static_cast<float>(mean[c])) / static_cast<float>(deviation[c]);
      } else if (normalize) {
        const auto inverse = static_cast<float>(1.0 / factor);
        v = (v - static_cast<float>(mean[c]) * inverse) / (static_cast<float>(deviation[c]) * inverse);
      } else if (rescale) {
        v *= static_cast<float>(factor);
      }
      if (!std::isfinite(v)) throw config.invalid("image_std", "a deviation of zero");
      values_[c][i] = v;
    }
}

PictureProcessor::Size PictureProcessor::resized(const Picture& p) const {
  const int64_t w = p.width, h = p.height, a = size_a_, b = size_b_;
  switch (rule_) {
    case Rule::none:
      return {w, h};
    case Rule::exact:
      return {b, a};
    case Rule::shortest:
      return w <= h ? Size{a, scaled(a, h, w)} : Size{scaled(a, w, h), a};
    case Rule::shortest_longest: {
      int64_t size = a;
      const double least = static_cast<double>(std::min(w, h)), most = static_cast<double>(std::max(w, h));
      double raw = static_cast<double>(a);
      if (most / least * static_cast<double>(a) > static_cast<double>(b)) {
        raw = static_cast<double>(b) * least / most;
        size = static_cast<int64_t>(std::nearbyint(raw));
      }
      if ((h <= w && h == size) || (w <= h && w == size)) return {w, h};
      const auto longer = [&](int64_t l, int64_t s) {
        return static_cast<int64_t>(raw * static_cast<double>(l) / static_cast<double>(s));
      };
      return w < h ? Size{size, longer(h, w)} : Size{longer(w, h), size};
    }
    case Rule::within: {
      const double scale = std::min(static_cast<double>(a) / static_cast<double>(h),
                                    static_cast<double>(b) / static_cast<double>(w));
      return {static_cast<int64_t>(static_cast<double>(w) * scale),
              static_cast<int64_t>(static_cast<double>(h) * scale)};
    }
  }
  return {w, h};
}

// The largest size in the picture's proportions whose patches are not too many: the reference's search.
PictureProcessor::Size PictureProcessor::patched(const Picture& picture) const {
  constexpr double kStep = 1e-5;
  const auto patches = [&](double scale, int64_t size) {
    return std::max(1.0, std::ceil(static_cast<double>(size) * scale / static_cast<double>(patch_)));
  };
  double low = kStep / 10, high = 100.0;
  while (high - low >= kStep) {
    const double middle = (low + high) / 2;
    if (patches(middle, picture.height) * patches(middle, picture.width) <= static_cast<double>(max_patches_))
      low = middle;
    else
      high = middle;
  }
  const Size size{static_cast<int64_t>(patches(low, picture.width)) * patch_,
                  static_cast<int64_t>(patches(low, picture.height)) * patch_};
  if (size.width / patch_ * (size.height / patch_) > max_patches_)
    throw error(ErrorKind::InvalidFile, "a picture of {} × {} pixels is too long for {} patches",
                picture.width, picture.height, max_patches_)
        .advise("cut or scale the picture first");
  return size;
}

// `picture` at (left, top) of a black frame.
Tensor PictureProcessor::finish(const Picture& picture, int64_t left, int64_t top, Size frame) const {
  check_picture_size("the result", frame.width, frame.height);
  Tensor out(DType::f32, {1, 3, frame.height, frame.width});
  const bool covered = picture.width == frame.width && picture.height == frame.height;
  const int64_t plane = frame.width * frame.height;
  for (size_t c = 0; c < 3; c++) {
    float* to = &out.at<float>(0) + static_cast<int64_t>(c) * plane;
    if (!covered) std::fill(to, to + plane, values_[c][0]);
    for (int64_t y = 0; y < picture.height; y++) {
      const uint8_t* row = picture.rgb.data() + y * picture.width * 3 + c;
      float* line = to + (top + y) * frame.width + left;
      for (int64_t x = 0; x < picture.width; x++) line[x] = values_[c][row[x * 3]];
    }
  }
  return out;
}

Tensor PictureProcessor::operator()(const Picture& picture) const {
  const Size size = in_patches() ? (rule_ == Rule::none ? patched(picture) : Size{}) : resized(picture);
  if (size.width < 1 || size.height < 1)
    throw error(ErrorKind::InvalidFile, "a picture of {} × {} pixels is too thin to be scaled", picture.width,
                picture.height)
        .advise("cut the picture first");
  if (!crop_)
    return finish(resize_picture(picture, size.width, size.height, filter_, arithmetic_), 0, 0, size);
  // Per axis: a part of the picture, or all of it with black on both sides.
  struct Axis {
    int64_t from, size, at;
  };
  const auto axis = [&](int64_t whole, int64_t crop) -> Axis {
    if (crop >= whole) return {0, whole, (crop - whole) / 2};
    const int64_t rest = whole - crop;
    // torchvision's own transform, on Pillow's pictures, rounds half to even; the processors cut.
    const int64_t from = arithmetic_ == ResizeArithmetic::pillow && rest % 4 == 3 ? (rest + 1) / 2 : rest / 2;
    return {from, crop, 0};
  };
  const Axis x = axis(size.width, crop_size_.width), y = axis(size.height, crop_size_.height);
  return finish(resize_picture(picture, size.width, size.height, {x.from, y.from, x.size, y.size}, filter_,
                               arithmetic_),
                x.at, y.at, crop_size_);
}

PicturePatches PictureProcessor::patches(const Picture& picture) const {
  const Size size = patched(picture);
  const Picture scaled_picture = resize_picture(picture, size.width, size.height, filter_, arithmetic_);
  const int64_t across = size.width / patch_, down = size.height / patch_, values = patch_ * patch_ * 3;
  PicturePatches out{Tensor(DType::f32, {1, max_patches_, values}), Tensor(DType::i32, {1, max_patches_}),
                     Tensor::i64({1, 2}, {down, across})};
  float* to = &out.values.at<float>(0);
  for (int64_t p = 0; p < across * down; p++) {
    out.mask.at<int32_t>(static_cast<size_t>(p)) = 1;
    for (int64_t y = 0; y < patch_; y++) {
      const int64_t row = p / across * patch_ + y;
      const uint8_t* from = scaled_picture.rgb.data() + (row * size.width + p % across * patch_) * 3;
      for (int64_t i = 0; i < patch_ * 3; i++) *to++ = values_[static_cast<size_t>(i % 3)][from[i]];
    }
  }
  return out;
}

}  // namespace cyb
