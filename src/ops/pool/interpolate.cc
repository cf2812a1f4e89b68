// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/interpolate.h"

#include <algorithm>
#include <cmath>

#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::CoordinateRule;
using ir::InterpolateMode;
using ir::NearestRule;

namespace {

// Where result index i lies on the operand's axis.
double coordinate(CoordinateRule rule, const ir::AxisScale& a, int64_t i) {
  const double x = static_cast<double>(i), in = static_cast<double>(a.in), out = a.scale * in;
  switch (rule) {
    case CoordinateRule::half_pixel:
      return (x + 0.5) / a.scale - 0.5;
    case CoordinateRule::half_pixel_symmetric: {
      const double offset = in / 2 * (1 - static_cast<double>(a.out) / out);
      return offset + (x + 0.5) / a.scale - 0.5;
    }
    case CoordinateRule::pytorch_half_pixel:
      return out == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
    case CoordinateRule::align_corners:
      return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case CoordinateRule::asymmetric:
      return x / a.scale;
    case CoordinateRule::tf_half_pixel_for_nn:
      return (x + 0.5) / a.scale;
    case CoordinateRule::tf_crop_and_resize: {
      const double span = a.roi_end - a.roi_begin;
      return a.roi_begin * (in - 1) + (out == 1 ? span * (in - 1) / 2 : x * span * (in - 1) / (out - 1));
    }
  }
  return x;
}

int64_t nearest(NearestRule rule, double x) {
  const double below = std::floor(x), ratio = x - below;
  if (ratio == 0) return static_cast<int64_t>(x);
  bool up = false;
  switch (rule) {
    case NearestRule::round_prefer_floor:
      up = ratio > 0.5;
      break;
    case NearestRule::round_prefer_ceil:
      up = ratio >= 0.5;
      break;
    case NearestRule::floor:
      break;
    case NearestRule::ceil:
      up = true;
      break;
  }
  return static_cast<int64_t>(below) + up;
}

// The kernel of the filter at distance x.
double filter(InterpolateMode mode, double a, double x) {
  x = std::fabs(x);
  if (mode == InterpolateMode::linear) return std::max(0.0, 1 - x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

AxisTaps axis_taps(const ir::InterpolateAttrs& a, const ir::AxisScale& s) {
  AxisTaps t;
  t.in = s.in;
  t.out = s.out;
  const bool whole = s.roi_begin == 0 && s.roi_end == 1;
  t.identity = !s.touched || (s.scale == 1 && s.in == s.out &&
                              (a.coordinates != CoordinateRule::tf_crop_and_resize || whole));
  if (t.identity || t.out == 0 || t.in == 0) return t;
  const bool crop = a.coordinates == CoordinateRule::tf_crop_and_resize;
  const double stretch = a.antialias ? std::min(s.scale, 1.0) : 1.0;
  const int64_t reach = a.mode == InterpolateMode::cubic ? 2 : 1;
  // Taps first … first + taps − 1 around the operand index below the coordinate. Beyond the axis only clamped
  // copies lie, so the window needs not be wider than a few lengths.
  double first =
      a.mode == InterpolateMode::nearest ? 0 : std::floor(-static_cast<double>(reach) / stretch) + 1;
  t.taps = a.mode == InterpolateMode::nearest ? 1 : 2 - 2 * static_cast<int64_t>(first);
  t.index.resize(static_cast<size_t>(t.out * t.taps));
  t.weight.resize(t.index.size());
  if (crop) t.outside.assign(static_cast<size_t>(t.out), false);
  const double last = static_cast<double>(t.in - 1);
  for (int64_t i = 0; i < t.out; i++) {
    double x = coordinate(a.coordinates, s, i);
    if (crop && !(x >= 0 && x <= last)) t.outside[static_cast<size_t>(i)] = true;
    // Far outside everything is the border; this keeps what follows within integers.
    x = std::isnan(x) ? 0 : std::clamp(x, -1e15, 1e15);
    const auto at = static_cast<size_t>(i * t.taps);
    if (a.mode == InterpolateMode::nearest) {
      t.index[at] = std::clamp<int64_t>(nearest(a.nearest, x), 0, t.in - 1);
      t.weight[at] = 1;
      continue;
    }
    const double base = std::floor(x), ratio = x - base;
    double sum = 0;
    for (int64_t k = 0; k < t.taps; k++) {
      const double offset = first + static_cast<double>(k);
      double w = filter(a.mode, a.cubic_a, (offset - ratio) * stretch);
      const double index = base + offset;
      if (a.exclude_outside && (index < 0 || index > last)) w = 0;
      t.index[at + static_cast<size_t>(k)] = static_cast<int64_t>(std::clamp(index, 0.0, last));
      t.weight[at + static_cast<size_t>(k)] = w;
      sum += w;
    }
    if ((a.antialias || a.exclude_outside) && sum != 0)
      for (int64_t k = 0; k < t.taps; k++) t.weight[at + static_cast<size_t>(k)] /= sum;
  }
  return t;
}

}  // namespace

void run_interpolate_reference(Call& c) {
  const auto axes = interpolate_taps(c);
  std::vector<double> x = reals(c.in[0]);
  Shape shape = c.in[0].shape;
  const double outside = c.attrs<ir::InterpolateAttrs>().extrapolation;
  for (size_t d = 0; d < axes.size(); d++) {
    const AxisTaps& t = axes[d];
    if (t.identity) continue;
    const int axis = static_cast<int>(d);
    const int64_t inner = shape.elements(axis + 1), outer = shape.elements(0, axis);
    std::vector<double> y(static_cast<size_t>(outer * t.out * inner));
    for (int64_t o = 0; o < outer; o++)
      for (int64_t i = 0; i < t.out; i++)
        for (int64_t k = 0; k < inner; k++) {
          double v = 0;
          for (int64_t j = 0; j < t.taps; j++) {
            const auto tap = static_cast<size_t>(i * t.taps + j);
            const double e = x[static_cast<size_t>((o * t.in + t.index[tap]) * inner + k)];
            v += t.taps == 1 ? e : e * t.weight[tap];
          }
          if (!t.outside.empty() && t.outside[static_cast<size_t>(i)]) v = outside;
          y[static_cast<size_t>((o * t.out + i) * inner + k)] = v;
        }
    x = std::move(y);
    shape[axis] = t.out;
  }
  store(c.out[0], x);
}

std::vector<AxisTaps> interpolate_taps(const Call& c) {
  const auto& a = c.attrs<ir::InterpolateAttrs>();
  const Shape& shape = c.in[0].shape;
  std::vector<int64_t> sizes;
  if (c.has(1))
    for (int64_t i = 0; i < c.in[1].elements(); i++) sizes.push_back(integer_at(c.in[1], i));
  std::string why;
  const auto axes =
      ir::interpolate_axes(a, {shape.begin(), static_cast<size_t>(shape.rank())}, sizes,
                           sizes.empty() ? reals_of(c, 2) : std::vector<double>(), reals_of(c, 3), &why);
  std::vector<AxisTaps> taps;
  for (const ir::AxisScale& axis : axes) taps.push_back(axis_taps(a, axis));
  return taps;
}

void add_interpolate_rows(KernelTable& t) {
  t.add({.op = ir::Op::Interpolate,
         .name = "interpolate_reference",
         .cost = 1000,
         .run = run_interpolate_reference});
  add_fast_interpolate_rows(t);
}

}  // namespace cyb::cpu
