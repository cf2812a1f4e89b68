// SPDX-License-Identifier: Apache-2.0
// Shape rules of resampling.
#include "ir/ops/sampling.h"

#include <algorithm>
#include <cmath>

#include "ir/ops/rules.h"

namespace cyb::ir {

namespace {

constexpr double kLargestAxis = 1e12;

std::vector<double> reals(const Tensor* t) {
  std::vector<double> out;
  if (t)
    for (int64_t i = 0; i < t->elements(); i++) out.push_back(t->real(static_cast<size_t>(i)));
  return out;
}
std::vector<int64_t> integers(const Tensor* t) {
  std::vector<int64_t> out;
  if (t)
    for (int64_t i = 0; i < t->elements(); i++) out.push_back(t->integer(static_cast<size_t>(i)));
  return out;
}

// An operand that is there and not known to be empty, as older exporters leave it.
bool given(const InferContext& c, int i) {
  if (!c.has(i)) return false;
  const Type& t = c.type(i);
  return !(t.rank() == 1 && t.dims[0] == Dim(0));
}

}  // namespace

std::vector<AxisScale> interpolate_axes(const InterpolateAttrs& a, std::span<const int64_t> in,
                                        std::span<const int64_t> sizes, std::span<const double> scales,
                                        std::span<const double> roi, std::string* why) {
  const auto rank = in.size();
  std::vector<AxisScale> out(rank);
  std::vector<size_t> axes;
  for (size_t i = 0; i < rank; i++) out[i].in = out[i].out = in[i];
  for (int64_t axis : a.axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || out[static_cast<size_t>(axis)].touched) {
      *why = "axes must be different axes of x";
      return out;
    }
    axes.push_back(static_cast<size_t>(axis));
    out[axes.back()].touched = true;
  }
  if (a.axes.empty())
    for (size_t i = 0; i < rank; i++) {
      axes.push_back(i);
      out[i].touched = true;
    }
  const size_t n = axes.size();
  if ((sizes.empty() && scales.size() != n) || (!sizes.empty() && sizes.size() != n) ||
      (!roi.empty() && roi.size() != 2 * n)) {
    *why = "sizes, scales and roi must have one value for each axis (roi two)";
    return out;
  }
  double common = a.aspect == AspectPolicy::not_smaller ? 0 : kLargestAxis;
  bool known = true;
  for (size_t i = 0; i < n; i++) {
    AxisScale& axis = out[axes[i]];
    if (!roi.empty()) {
      axis.roi_begin = roi[i];
      axis.roi_end = roi[n + i];
      if (!std::isfinite(roi[i]) || !std::isfinite(roi[n + i])) *why = "roi must be finite";
    }
    if (!sizes.empty()) {
      axis.out = sizes[i];
      if (axis.out < 0) *why = "a negative size";
      if (axis.in == 0 && axis.out > 0) *why = "an empty axis cannot grow";
      if (axis.in > 0) axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
      known = known && axis.in >= 0;
      common =
          a.aspect == AspectPolicy::not_smaller ? std::max(common, axis.scale) : std::min(common, axis.scale);
    } else {
      axis.scale = scales[i];
      if (!(axis.scale > 0) || axis.scale > kLargestAxis) *why = "scales must be positive";
      if (axis.in >= 0) {
        // In f32, as ONNX's own shape inference computes it.
        const double length =
            std::floor(static_cast<double>(static_cast<float>(axis.in) * static_cast<float>(axis.scale)));
        if (length > kLargestAxis) *why = "too large";
        axis.out = why->empty() ? static_cast<int64_t>(length) : 0;
      }
    }
  }
  if (!sizes.empty() && a.aspect != AspectPolicy::stretch)
    for (size_t i : axes) {
      const double length = static_cast<double>(out[i].in) * common + 0.5;
      if (known && length > kLargestAxis) *why = "too large";
      out[i].scale = common;
      out[i].out = known && why->empty() ? static_cast<int64_t>(length) : -1;
    }
  return out;
}

void rule_interpolate(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<InterpolateAttrs>();
  const bool sized = given(c, 1);
  c.require(sized || given(c, 2), "needs sizes or scales");
  c.require(x.dtype != DType::string && x.dtype != DType::boolean, "needs numbers");
  const Tensor* value = c.host_value(sized ? 1 : 2);
  if (given(c, 3)) c.host_value(3);
  Type t = x;
  if (!value) {
    for (size_t i = 0; i < t.dims.size(); i++)
      if (a.axes.empty()) t.dims[i] = Dim();
    for (int64_t axis : a.axes) t.dims[static_cast<size_t>(c.axis(axis, x.rank()))] = Dim();
    return c.result(0, t);
  }
  std::vector<int64_t> in;
  for (Dim d : x.dims) in.push_back(d.is_number() ? d.number() : -1);
  std::string why;
  const auto axes = interpolate_axes(a, in, sized ? integers(value) : std::vector<int64_t>(),
                                     sized ? std::vector<double>() : reals(value),
                                     given(c, 3) ? reals(c.host_value(3)) : std::vector<double>(), &why);
  c.require(why.empty(), why);
  for (size_t i = 0; i < axes.size(); i++)
    if (axes[i].touched && !(axes[i].in < 0 && !sized && axes[i].scale == 1))
      t.dims[i] = axes[i].out < 0 ? Dim() : Dim(axes[i].out);
  c.result(0, t);
}

void rule_grid_sample(InferContext& c) {
  const Type& x = c.type(0);
  const Type& grid = c.type(1);
  c.require(x.rank() >= 3 && grid.rank() == x.rank(), "x [N, C, …] and grid [N, …, axes] must have one rank");
  c.require(is_float(grid.dtype) && x.dtype != DType::string, "needs numbers and a grid of floats");
  c.same(grid.dims.back(), Dim(x.rank() - 2), "coordinates and axes");
  Type t{x.dtype, {c.same(x.dims[0], grid.dims[0], "batches"), x.dims[1]}};
  t.dims.insert(t.dims.end(), grid.dims.begin() + 1, grid.dims.end() - 1);
  c.result(0, t);
}

void rule_roi_align(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<RoiAlignAttrs>();
  c.require(x.rank() == 4 && is_float(x.dtype), "x must be floats [N, C, H, W]");
  c.require(c.type(1).rank() == 2 && c.type(1).dtype == x.dtype, "rois must be [R, 4] of x's type");
  c.same(c.type(1).dims[1], Dim(4), "rois");
  c.require(c.type(2).rank() == 1 && is_integer(c.type(2).dtype), "batch must be integers [R]");
  c.require(a.height > 0 && a.width > 0 && a.height < 1 << 20 && a.width < 1 << 20,
            "height and width must be positive");
  c.require(a.sampling >= 0 && a.sampling < 1 << 20, "sampling must not be negative");
  c.result(0, {x.dtype,
               {c.same(c.type(1).dims[0], c.type(2).dims[0], "rois and batch"), x.dims[1], Dim(a.height),
                Dim(a.width)}});
}

void rule_col2im(InferContext& c) {
  const Type& x = c.type(0);
  const auto& a = c.attrs<Col2ImAttrs>();
  c.require(x.rank() == 3, "x must be [N, C·block, L]");
  const Tensor* image = c.host_value(1);
  const Tensor* block = c.host_value(2);
  if (!image || !block) {
    Type t{x.dtype, {}};
    const Type& s = c.type(1);
    if (s.rank() == 1 && s.dims[0].is_number() && s.dims[0].number() <= kMaxRank - 2) {
      t.dims.assign(static_cast<size_t>(s.dims[0].number()) + 2, Dim());
      t.dims[0] = x.dims[0];
    } else {
      t.known_rank = false;
    }
    return c.result(0, t);
  }
  const auto sizes = integers(image), kernel = integers(block);
  const size_t n = sizes.size();
  c.require(n >= 1 && n + 2 <= kMaxRank && kernel.size() == n, "image and block must have one value an axis");
  c.require((a.strides.empty() || a.strides.size() == n) &&
                (a.dilations.empty() || a.dilations.size() == n) &&
                (a.pads.empty() || a.pads.size() == 2 * n),
            "strides, dilations or pads have the wrong number of values");
  int64_t elements = 1, blocks = 1;
  Type t{x.dtype, {x.dims[0], Dim()}};
  for (size_t i = 0; i < n; i++) {
    const int64_t stride = a.strides.empty() ? 1 : a.strides[i],
                  dilation = a.dilations.empty() ? 1 : a.dilations[i];
    constexpr int64_t kMost = 1 << 28;
    auto pad = [&](size_t k) { return a.pads.empty() ? 0 : a.pads[k]; };
    c.require(pad(i) >= 0 && pad(i) < kMost && pad(n + i) >= 0 && pad(n + i) < kMost,
              "pads must be reasonable");
    const int64_t pads = pad(i) + pad(n + i);
    c.require(sizes[i] >= 0 && sizes[i] < kMost && kernel[i] > 0 && kernel[i] < kMost && stride > 0 &&
                  stride < kMost && dilation > 0 && dilation < kMost,
              "sizes, strides and dilations must be reasonable");
    const int64_t span = sizes[i] + pads - dilation * (kernel[i] - 1) - 1;
    c.require(span >= 0, "the block is larger than the image");
    c.require(elements <= kMost / kernel[i] && blocks <= kMost / (span / stride + 1), "too large");
    elements *= kernel[i];
    blocks *= span / stride + 1;
    t.dims.emplace_back(sizes[i]);
  }
  c.same(x.dims[2], Dim(blocks), "columns and positions of the block");
  if (x.dims[1].is_number()) {
    c.require(x.dims[1].number() % elements == 0, "rows are no multiple of the block");
    t.dims[1] = x.dims[1].number() / elements;
  }
  c.result(0, t);
}

}  // namespace cyb::ir
