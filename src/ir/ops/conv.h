// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions, pooling and resampling. Spatial attributes have one entry an axis (empty: the
// neutral value), pads have all begins, then all ends. Meanings are ONNX's.
#pragma once

#include "ir/attrs.h"

namespace cyb::ir {

enum class AutoPad { none, same_upper, same_lower, valid };
inline std::span<const char* const> enum_names(AutoPad) {
  static constexpr const char* names[] = {"none", "same_upper", "same_lower", "valid"};
  return names;
}

struct ConvAttrs {
  std::vector<int64_t> strides, pads, dilations;
  int64_t groups = 1;
  AutoPad auto_pad = AutoPad::none;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("pads", pads);
    v("dilations", dilations);
    v("groups", groups);
    v("auto_pad", auto_pad);
  }
};

// Weight [Cin, Cout/groups, k…].
struct ConvTransposeAttrs : ConvAttrs {
  std::vector<int64_t> output_padding;
  std::vector<int64_t> output_shape;  // spatial axes; not empty: pads follow from it and auto_pad
  template <class V>
  void fields(V& v) {
    ConvAttrs::fields(v);
    v("output_padding", output_padding);
    v("output_shape", output_shape);
  }
};

// What a fused convolution does to its sums. alpha, beta: leaky_relu slope; elu alpha; hard_sigmoid
// clamp(alpha·x + beta, 0, 1); clamp from alpha to beta.
enum class ConvActivation {
  none,
  relu,
  leaky_relu,
  clamp,
  sigmoid,
  tanh,
  silu,
  gelu,
  gelu_tanh,
  hard_sigmoid,
  hard_swish,
  mish,
  elu
};
inline std::span<const char* const> enum_names(ConvActivation) {
  static constexpr const char* names[] = {"none",       "relu", "leaky_relu", "clamp",     "sigmoid",
                                          "tanh",       "silu", "gelu",       "gelu_tanh", "hard_sigmoid",
                                          "hard_swish", "mish", "elu"};
  return names;
}

// act(conv(x, w) + bias + residual)·scale + shift, or act(conv(x, w) + bias)·scale + shift + residual with
// `residual_last`.
struct FusedConvAttrs : ConvAttrs {
  ConvActivation act = ConvActivation::none;
  double alpha = 0, beta = 0;
  double scale = 1, shift = 0;
  bool residual_last = false;
  template <class V>
  void fields(V& v) {
    ConvAttrs::fields(v);
    v("act", act);
    v("alpha", alpha);
    v("beta", beta);
    v("scale", scale);
    v("shift", shift);
    v("residual_last", residual_last);
  }
};

enum class PoolKind { max, average, lp };
inline std::span<const char* const> enum_names(PoolKind) {
  static constexpr const char* names[] = {"max", "average", "lp"};
  return names;
}

struct PoolAttrs {
  PoolKind kind = PoolKind::max;
  std::vector<int64_t> kernel, strides, pads, dilations;
  AutoPad auto_pad = AutoPad::none;
  bool ceil = false;
  bool count_pad = false;     // average: the divisor counts padding (never the overshoot of ceil)
  int64_t p = 2;              // lp
  bool column_major = false;  // max with indices: ONNX storage_order = 1
  template <class V>
  void fields(V& v) {
    v("kind", kind);
    v("kernel", kernel);
    v("strides", strides);
    v("pads", pads);
    v("dilations", dilations);
    v("auto_pad", auto_pad);
    v("ceil", ceil);
    v("count_pad", count_pad);
    v("p", p);
    v("column_major", column_major);
  }
};

enum class InterpolateMode { nearest, linear, cubic };
inline std::span<const char* const> enum_names(InterpolateMode) {
  static constexpr const char* names[] = {"nearest", "linear", "cubic"};
  return names;
}
enum class CoordinateRule {
  half_pixel,
  half_pixel_symmetric,
  pytorch_half_pixel,
  align_corners,
  asymmetric,
  tf_half_pixel_for_nn,
  tf_crop_and_resize
};
inline std::span<const char* const> enum_names(CoordinateRule) {
  static constexpr const char* names[] = {"half_pixel",        "half_pixel_symmetric", "pytorch_half_pixel",
                                          "align_corners",     "asymmetric",           "tf_half_pixel_for_nn",
                                          "tf_crop_and_resize"};
  return names;
}
enum class NearestRule { round_prefer_floor, round_prefer_ceil, floor, ceil };
inline std::span<const char* const> enum_names(NearestRule) {
  static constexpr const char* names[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  return names;
}
enum class AspectPolicy { stretch, not_larger, not_smaller };
inline std::span<const char* const> enum_names(AspectPolicy) {
  static constexpr const char* names[] = {"stretch", "not_larger", "not_smaller"};
  return names;
}

struct InterpolateAttrs {
  InterpolateMode mode = InterpolateMode::nearest;
  CoordinateRule coordinates = CoordinateRule::half_pixel;
  NearestRule nearest = NearestRule::round_prefer_floor;
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;                     // tf_crop_and_resize, outside the picture
  AspectPolicy aspect = AspectPolicy::stretch;  // with sizes
  std::vector<int64_t> axes;                    // that sizes, scales and roi speak of; empty: all
  template <class V>
  void fields(V& v) {
    v("mode", mode);
    v("coordinates", coordinates);
    v("nearest", nearest);
    v("cubic_a", cubic_a);
    v("exclude_outside", exclude_outside);
    v("antialias", antialias);
    v("extrapolation", extrapolation);
    v("aspect", aspect);
    v("axes", axes);
  }
};

enum class GridPadding { zeros, border, reflection };
inline std::span<const char* const> enum_names(GridPadding) {
  static constexpr const char* names[] = {"zeros", "border", "reflection"};
  return names;
}
struct GridSampleAttrs {
  InterpolateMode mode = InterpolateMode::linear;
  GridPadding padding = GridPadding::zeros;
  bool align_corners = false;
  template <class V>
  void fields(V& v) {
    v("mode", mode);
    v("padding", padding);
    v("align_corners", align_corners);
  }
};

struct RoiAlignAttrs {
  int64_t height = 1, width = 1;
  int64_t sampling = 0;  // samples a bin along each axis, 0: as many as the bin is wide
  double scale = 1;
  bool max = false;  // instead of the average
  bool half_pixel = true;
  template <class V>
  void fields(V& v) {
    v("height", height);
    v("width", width);
    v("sampling", sampling);
    v("scale", scale);
    v("max", max);
    v("half_pixel", half_pixel);
  }
};

struct NmsAttrs {
  bool center = false;  // boxes are x, y, width, height instead of two corners y, x
  template <class V>
  void fields(V& v) {
    v("center", center);
  }
};

struct Col2ImAttrs {
  std::vector<int64_t> strides, pads, dilations;
  template <class V>
  void fields(V& v) {
    v("strides", strides);
    v("pads", pads);
    v("dilations", dilations);
  }
};

struct LrnAttrs {
  int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
  template <class V>
  void fields(V& v) {
    v("size", size);
    v("alpha", alpha);
    v("beta", beta);
    v("bias", bias);
  }
};

struct DeformConvAttrs : ConvAttrs {
  int64_t offset_groups = 1;
  template <class V>
  void fields(V& v) {
    ConvAttrs::fields(v);
    v("offset_groups", offset_groups);
  }
};

}  // namespace cyb::ir
