// SPDX-License-Identifier: Apache-2.0
// Resize and its kin, sampling at given positions, detection.
#include "import/onnx/ops_util.h"

namespace cyb::onnx {

using namespace ir;

namespace {

template <class E>
E choice(const NodeContext& c, std::string_view attribute, std::string_view fallback,
         std::initializer_list<std::pair<std::string_view, E>> names) {
  const std::string name = c.attr_string(attribute, fallback);
  for (const auto& [text, value] : names)
    if (name == text) return value;
  c.unsupported(fmt::format("{} '{}'", attribute, name));
}

InterpolateMode mode_of(const NodeContext& c, std::string_view fallback) {
  return choice<InterpolateMode>(c, "mode", fallback,
                                 {{"nearest", InterpolateMode::nearest},
                                  {"linear", InterpolateMode::linear},
                                  {"bilinear", InterpolateMode::linear},
                                  {"cubic", InterpolateMode::cubic},
                                  {"bicubic", InterpolateMode::cubic}});
}

// Exporters write an empty constant for an operand that is not meant.
bool present(NodeContext& c, int i) {
  if (!c.has(i)) return false;
  const Type& t = c.in_type(i);
  return !(t.known_rank && t.rank() == 1 && t.dims[0] == Dim(0));
}

// Before opset 11: asymmetric coordinates; "nearest" goes down where an axis grows and up where it shrinks.
void old_resize(NodeContext& c, ValueId scales) {
  InterpolateAttrs a;
  a.mode = mode_of(c, "nearest");
  a.coordinates = CoordinateRule::asymmetric;
  a.nearest = NearestRule::floor;
  const Tensor* known = c.constant(scales);
  const bool nearest = a.mode == InterpolateMode::nearest;
  std::vector<double> grow, shrink;
  bool grows = false, shrinks = false;
  if (known && nearest)
    for (int64_t i = 0; i < known->elements(); i++) {
      const double s = known->real(static_cast<size_t>(i));
      grow.push_back(s < 1 ? 1 : s);
      shrink.push_back(s < 1 ? s : 1);
      grows |= s > 1;
      shrinks |= s < 1;
    }
  ValueId x = c.in(0);
  const auto step = [&](const std::vector<double>& by, NearestRule rule) {
    std::vector<float> f(by.begin(), by.end());
    a.nearest = rule;
    x = c.op(Op::Interpolate, {x, kNone, c.constant(Tensor::f32({static_cast<int64_t>(f.size())}, f))}, a);
  };
  if (!shrinks) {
    x = c.op(Op::Interpolate, {x, kNone, scales}, a);
  } else {
    if (grows) step(grow, NearestRule::floor);
    step(shrink, NearestRule::ceil);
  }
  c.out(0, x);
}

void convert_resize(NodeContext& c) {
  if (c.opset() < 11) return old_resize(c, c.in(1));
  InterpolateAttrs a;
  a.mode = mode_of(c, "nearest");
  a.coordinates = choice<CoordinateRule>(c, "coordinate_transformation_mode", "half_pixel",
                                         {{"half_pixel", CoordinateRule::half_pixel},
                                          {"half_pixel_symmetric", CoordinateRule::half_pixel_symmetric},
                                          {"pytorch_half_pixel", CoordinateRule::pytorch_half_pixel},
                                          {"align_corners", CoordinateRule::align_corners},
                                          {"asymmetric", CoordinateRule::asymmetric},
                                          {"tf_half_pixel_for_nn", CoordinateRule::tf_half_pixel_for_nn},
                                          {"tf_crop_and_resize", CoordinateRule::tf_crop_and_resize}});
  a.nearest = choice<NearestRule>(c, "nearest_mode", "round_prefer_floor",
                                  {{"round_prefer_floor", NearestRule::round_prefer_floor},
                                   {"round_prefer_ceil", NearestRule::round_prefer_ceil},
                                   {"floor", NearestRule::floor},
                                   {"ceil", NearestRule::ceil}});
  a.aspect = choice<AspectPolicy>(c, "keep_aspect_ratio_policy", "stretch",
                                  {{"stretch", AspectPolicy::stretch},
                                   {"not_larger", AspectPolicy::not_larger},
                                   {"not_smaller", AspectPolicy::not_smaller}});
  a.cubic_a = c.attr_float("cubic_coeff_a", -0.75);
  a.exclude_outside = c.attr_int("exclude_outside", 0) != 0;
  a.antialias = c.attr_int("antialias", 0) != 0;
  a.extrapolation = c.attr_float("extrapolation_value", 0);
  a.axes = c.attr_ints("axes");
  ValueId roi = kNone, scales = kNone, sizes = kNone;
  if (a.coordinates == CoordinateRule::tf_crop_and_resize && present(c, 1)) roi = c.cast(c.in(1), DType::f32);
  if (present(c, 3))
    sizes = c.in(3);
  else if (present(c, 2))
    scales = c.in(2);
  else
    c.invalid("neither sizes nor scales");
  c.out(0, c.op(Op::Interpolate, trimmed({c.in(0), sizes, scales, roi}), a));
}

void convert_upsample(NodeContext& c) {
  if (c.opset() >= 9) return old_resize(c, c.in(1));
  const auto scales = c.attr_floats("scales");
  std::vector<float> f(scales.begin(), scales.end());
  old_resize(c, c.constant(Tensor::f32({static_cast<int64_t>(f.size())}, f)));
}

void convert_grid_sample(NodeContext& c) {
  GridSampleAttrs a{.mode = mode_of(c, "linear")};
  a.padding = choice<GridPadding>(c, "padding_mode", "zeros",
                                  {{"zeros", GridPadding::zeros},
                                   {"border", GridPadding::border},
                                   {"reflection", GridPadding::reflection}});
  a.align_corners = c.attr_int("align_corners", 0) != 0;
  c.out(0, c.op(Op::GridSample, {c.in(0), c.in(1)}, a));
}

// Positions of a transformed picture: θ · (x, y[, z], 1), coordinates from −1 to 1.
void convert_affine_grid(NodeContext& c) {
  const ValueId theta = c.in(0), size = c.in(1);
  const Type t = c.type_of(theta);
  if (!t.known_rank || t.rank() != 3 || !t.dims[1].is_number())
    c.unsupported("the shape of theta must be known");
  const int64_t n = t.dims[1].number();  // 2 or 3 spatial axes
  if (n != 2 && n != 3) c.invalid(fmt::format("theta of {} rows", n));
  const bool align = c.attr_int("align_corners", 0) != 0;
  const auto column = [&](int64_t j) {
    std::vector<int64_t> shape(static_cast<size_t>(n) + 2, 1);
    shape.front() = 0;
    shape.back() = n;
    return c.reshape(c.slice(theta, 2, j, j + 1), shape);
  };
  ValueId y = column(n);
  for (int64_t j = 0; j < n; j++) {
    const int64_t axis = n - 1 - j;  // x runs along the last axis
    const ValueId length = c.slice(size, 0, axis + 2, axis + 3);
    const ValueId i = c.cast(counting(c, length), t.dtype);
    ValueId at;
    if (align) {
      const ValueId gaps = c.op(Op::Max, {c.sub(length, c.i64s({1})), c.i64s({1})});
      at = plus(c, c.div(times(c, i, 2), c.cast(gaps, t.dtype)), -1);
    } else {
      at = plus(c, c.div(plus(c, times(c, i, 2), 1), c.cast(length, t.dtype)), -1);
    }
    std::vector<int64_t> shape(static_cast<size_t>(n) + 2, 1);
    shape[static_cast<size_t>(axis) + 1] = -1;
    y = c.add(y, c.mul(c.reshape(at, shape), column(j)));
  }
  c.out(0, y);
}

void convert_roi_align(NodeContext& c) {
  RoiAlignAttrs a;
  a.height = c.attr_int("output_height", 1);
  a.width = c.attr_int("output_width", 1);
  a.sampling = c.attr_int("sampling_ratio", 0);
  a.scale = c.attr_float("spatial_scale", 1);
  a.max = choice<bool>(c, "mode", "avg", {{"avg", false}, {"max", true}});
  a.half_pixel = c.opset() >= 16 && choice<bool>(c, "coordinate_transformation_mode", "half_pixel",
                                                 {{"half_pixel", true}, {"output_half_pixel", false}});
  c.out(0, c.op(Op::RoiAlign, {c.in(0), c.in(1), c.in(2)}, a));
}

void convert_non_max_suppression(NodeContext& c) {
  NmsAttrs a{.center = c.attr_int("center_point_box", 0) != 0};
  c.out(0, c.op(Op::NonMaxSuppression,
                trimmed({c.in(0), c.in(1), c.in_or_none(2), c.in_or_none(3), c.in_or_none(4)}), a));
}

void convert_col2im(NodeContext& c) {
  Col2ImAttrs a{
      .strides = c.attr_ints("strides"), .pads = c.attr_ints("pads"), .dilations = c.attr_ints("dilations")};
  c.out(0, c.op(Op::Col2Im, {c.in(0), c.in(1), c.in(2)}, a));
}

}  // namespace

void add_resample_converters(Registry& r) {
  r.add("Resize", convert_resize);
  r.add("Upsample", convert_upsample);
  r.add("GridSample", convert_grid_sample);
  r.add("AffineGrid", convert_affine_grid);
  r.add("RoiAlign", convert_roi_align);
  r.add("NonMaxSuppression", convert_non_max_suppression);
  r.add("Col2Im", convert_col2im);
}

}  // namespace cyb::onnx
