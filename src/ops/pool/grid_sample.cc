// SPDX-License-Identifier: Apache-2.0
// GridSample for any number of axes: positions are computed in f32 as the coordinates are given (f64 in f64),
// values in f64.
#include <algorithm>
#include <cmath>

#include "ir/ops/conv.h"
#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::GridPadding;
using ir::InterpolateMode;

namespace {

// Mirrors x at the borders until it lies between them.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (!(range > 0)) return low;
  const double beyond = x < low ? low - x : x > high ? x - high : -1;
  if (beyond < 0) return x;
  const double turns = std::trunc(beyond / range), rest = beyond - turns * range;
  const bool even = std::fmod(turns, 2) == 0;
  return (x < low) == even ? low + rest : high - rest;
}

struct Axis {
  int64_t length;
  double low, high;  // borders
};

// The index that stands for i under the padding, −1: zero.
int64_t resolve(GridPadding padding, const Axis& a, int64_t i) {
  if (i >= 0 && i < a.length) return i;
  if (padding == GridPadding::zeros) return -1;
  if (padding == GridPadding::border) return i < 0 ? 0 : a.length - 1;
  const double r = reflect(static_cast<double>(i), a.low, a.high);
  return std::clamp<int64_t>(static_cast<int64_t>(r), 0, a.length - 1);
}

void cubic(double x, double* w) {
  constexpr double a = -0.75;
  auto far = [&](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  auto near = [&](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  w[0] = far(x + 1);
  w[1] = near(x);
  w[2] = near(1 - x);
  w[3] = far(2 - x);
}

// Where a coordinate in [−1, 1] lies on the axis, after padding.
double place(const ir::GridSampleAttrs& attrs, const Axis& a, double n, bool f64) {
  double x;
  if (f64) {
    const auto length = static_cast<double>(a.length);
    x = attrs.align_corners ? (n + 1) / 2 * (length - 1) : ((n + 1) * length - 1) / 2;
  } else {
    const auto f = static_cast<float>(n), length = static_cast<float>(a.length);
    x = static_cast<double>(attrs.align_corners ? (f + 1) / 2 * (length - 1) : ((f + 1) * length - 1) / 2);
  }
  if (attrs.mode == InterpolateMode::nearest) x = std::nearbyint(x);
  if (!(x >= a.low && x <= a.high)) {
    // Cubic taps are clamped each for itself, as torch and onnxruntime have it.
    if (attrs.padding == GridPadding::border && attrs.mode != InterpolateMode::cubic)
      x = std::clamp(x, 0.0, static_cast<double>(a.length - 1));
    if (attrs.padding == GridPadding::reflection) x = reflect(x, a.low, a.high);
  }
  return std::isfinite(x) ? std::clamp(x, -1e15, 1e15) : -1e15;
}

void run_grid_sample(Call& c) {
  const auto& attrs = c.attrs<ir::GridSampleAttrs>();
  const Shape &shape = c.in[0].shape, &out = c.out[0].shape;
  const auto x = reals(c.in[0]), grid = reals(c.in[1]);
  const auto axes = static_cast<size_t>(shape.rank() - 2);
  std::vector<Axis> axis(axes);
  for (size_t i = 0; i < axes; i++) {
    const int64_t n = shape[static_cast<int>(i) + 2];
    axis[i] = {n, attrs.align_corners ? 0 : -0.5, static_cast<double>(n) - (attrs.align_corners ? 1 : 0.5)};
  }
  const int64_t spatial = shape.elements(2), points = out.elements(2),
                taps = attrs.mode == InterpolateMode::cubic    ? 4
                       : attrs.mode == InterpolateMode::linear ? 2
                                                               : 1;
  int64_t corners = 1;
  for (size_t i = 0; i < axes; i++) corners *= taps;
  std::vector<double> y(static_cast<size_t>(out.elements()), 0.0);
  std::vector<int64_t> index(axes * 4);
  std::vector<double> weight(axes * 4);
  for (int64_t n = 0; spatial > 0 && n < out[0]; n++)
    for (int64_t p = 0; p < points; p++) {
      for (size_t i = 0; i < axes; i++) {
        // The grid gives the last axis first.
        const double at =
            place(attrs, axis[i], grid[static_cast<size_t>((n * points + p)) * axes + (axes - 1 - i)],
                  c.in[1].dtype == DType::f64);
        const double below = std::floor(at);
        const auto first = static_cast<int64_t>(below) - (taps == 4 ? 1 : 0);
        double w[4] = {1, 0, 0, 0};
        if (taps == 2) w[0] = 1 - (at - below), w[1] = at - below;
        if (taps == 4) cubic(at - below, w);
        for (size_t k = 0; k < static_cast<size_t>(taps); k++) {
          index[i * 4 + k] = resolve(attrs.padding, axis[i], first + static_cast<int64_t>(k));
          weight[i * 4 + k] = w[k];
        }
      }
      for (int64_t k = 0; k < out[1]; k++) {
        const double* from = x.data() + (n * out[1] + k) * spatial;
        double sum = 0;
        for (int64_t corner = 0; corner < corners; corner++) {
          int64_t rest = corner, at = 0, unit = 1;
          double w = 1;
          for (size_t i = axes; i-- > 0;) {
            const auto tap = i * 4 + static_cast<size_t>(rest % taps);
            rest /= taps;
            if (index[tap] < 0) {
              w = 0;
              break;
            }
            w *= weight[tap];
            at += index[tap] * unit;
            unit *= axis[i].length;
          }
          if (w != 0) sum += w * from[at];
        }
        y[static_cast<size_t>((n * out[1] + k) * points + p)] = sum;
      }
    }
  store(c.out[0], y);
}

}  // namespace

void add_grid_sample_rows(KernelTable& t) {
  t.add({.op = ir::Op::GridSample, .name = "grid_sample_reference", .cost = 1000, .run = run_grid_sample});
}

}  // namespace cyb::cpu
