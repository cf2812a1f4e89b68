// SPDX-License-Identifier: Apache-2.0
// The front end of vision models: a picture to the tensor that the graph reads, as a `[preprocessor]` section
// says. The importer has completed the section: nothing has a default here.
//
//   do_resize         size: {shortest_edge}, {shortest_edge, longest_edge}, {height, width}, {max_height,
//   max_width};
//                     resample: Pillow's number; arithmetic: "torchvision" or "pillow" (resize.h)
//   do_center_crop    crop_size: {height, width}; what the picture does not cover is black
//   do_rescale, do_normalize   rescale_factor, image_mean, image_std
//   patch_size, max_num_patches   instead of size: patches in the picture's own proportions (SigLIP 2 NaFlex)
#pragma once

#include <array>

#include "format/config.h"
#include "media/picture/picture.h"
#include "media/picture/resize.h"
#include "tensor/tensor.h"

namespace cyb {

// A picture as patches of values in the order row, column, channel.
struct PicturePatches {
  Tensor values;          // f32 [1, max_num_patches, patch_size² · 3], zeros after the last patch
  Tensor mask;            // i32 [1, max_num_patches]
  Tensor spatial_shapes;  // i64 [1, 2]: patches down and across
};

class PictureProcessor {
 public:
  // Throws InvalidConfig for what is missing or out of range.
  explicit PictureProcessor(const Config& config);

  // f32 [1, 3, H, W]. H and W depend on the picture where the section neither crops nor gives both.
  Tensor operator()(const Picture& picture) const;

  bool in_patches() const { return max_patches_ > 0; }
  PicturePatches patches(const Picture& picture) const;

 private:
  enum class Rule { none, exact, shortest, shortest_longest, within };
  struct Size {
    int64_t width = 0, height = 0;
  };
  void read_size(const Config& config);
  void read_values(const Config& config);
  Size resized(const Picture& picture) const;
  Size patched(const Picture& picture) const;
  Tensor finish(const Picture& picture, int64_t left, int64_t top, Size frame) const;

  Rule rule_ = Rule::none;
  int64_t size_a_ = 0, size_b_ = 0;  // height and width, or shortest and longest edge
  ResizeFilter filter_ = ResizeFilter::bilinear;
  ResizeArithmetic arithmetic_ = ResizeArithmetic::torchvision;
  bool crop_ = false;
  Size crop_size_;
  int64_t patch_ = 0, max_patches_ = 0;
  // Every 8-bit value of every channel as the model sees it.
  std::array<std::array<float, 256>, 3> values_{};
};

}  // namespace cyb
