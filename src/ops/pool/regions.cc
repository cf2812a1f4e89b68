// SPDX-License-Identifier: Apache-2.0
// RoiAlign, NonMaxSuppression and Col2Im by their definition.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "ir/ops/nms.h"
#include "ops/common/reals.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

// The four values around a point and their weights; all weights 0 beyond the picture.
struct Corners {
  int64_t at[4] = {};
  double weight[4] = {};
};
Corners corners(double y, double x, int64_t height, int64_t width) {
  Corners c;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return c;
  y = std::max(y, 0.0);
  x = std::max(x, 0.0);
  int64_t top = static_cast<int64_t>(y), left = static_cast<int64_t>(x), bottom = top + 1, right = left + 1;
  if (top >= height - 1) {
    top = bottom = height - 1;
    y = static_cast<double>(top);
  }
  if (left >= width - 1) {
    left = right = width - 1;
    x = static_cast<double>(left);
  }
  const double dy = y - static_cast<double>(top), dx = x - static_cast<double>(left);
  c.at[0] = top * width + left;
  c.at[1] = top * width + right;
  c.at[2] = bottom * width + left;
  c.at[3] = bottom * width + right;
  c.weight[0] = (1 - dy) * (1 - dx);
  c.weight[1] = (1 - dy) * dx;
  c.weight[2] = dy * (1 - dx);
  c.weight[3] = dy * dx;
  return c;
}

void run_roi_align(Call& c) {
  const auto& a = c.attrs<ir::RoiAlignAttrs>();
  const auto x = reals(c.in[0]), rois = reals(c.in[1]);
  const Shape& shape = c.in[0].shape;
  const int64_t channels = shape[1], height = shape[2], width = shape[3];
  const double shift = a.half_pixel ? 0.5 : 0;
  std::vector<double> y(static_cast<size_t>(c.out[0].elements()), 0.0);
  for (int64_t r = 0; r < c.in[1].shape[0]; r++) {
    const int64_t batch = integer_at(c.in[2], r);
    if (batch < 0 || batch >= shape[0] || height == 0 || width == 0) continue;  // nothing outside is read
    const double* roi = rois.data() + r * 4;
    const double left = roi[0] * a.scale - shift, top = roi[1] * a.scale - shift;
    double w = roi[2] * a.scale - shift - left, h = roi[3] * a.scale - shift - top;
    if (!a.half_pixel) {
      w = std::max(w, 1.0);
      h = std::max(h, 1.0);
    }
    const double bin_h = h / static_cast<double>(a.height), bin_w = w / static_cast<double>(a.width);
    // Samples further apart than a pixel add nothing: boxes of untrusted size need a bound.
    auto samples = [&](double bin, int64_t length) {
      if (a.sampling > 0) return a.sampling;
      const double n = std::ceil(bin);
      return n > 0 ? static_cast<int64_t>(std::min(n, 4.0 * static_cast<double>(length) + 4)) : int64_t{0};
    };
    const int64_t rows = samples(bin_h, height), columns = samples(bin_w, width);
    for (int64_t ph = 0; ph < a.height; ph++)
      for (int64_t pw = 0; pw < a.width; pw++)
        for (int64_t k = 0; k < channels; k++) {
          const double* from = x.data() + (batch * channels + k) * height * width;
          double sum = 0;
          bool first = true;
          for (int64_t i = 0; i < rows; i++)
            for (int64_t j = 0; j < columns; j++) {
              const double py = top + static_cast<double>(ph) * bin_h +
                                (static_cast<double>(i) + 0.5) * bin_h / static_cast<double>(rows);
              const double px = left + static_cast<double>(pw) * bin_w +
                                (static_cast<double>(j) + 0.5) * bin_w / static_cast<double>(columns);
              const Corners q = corners(py, px, height, width);
              double v = 0, most = 0;
              for (int n = 0; n < 4; n++) {
                const double part = q.weight[n] * from[q.at[n]];
                v += part;
                most = n == 0 ? part : std::max(most, part);
              }
              if (a.max)
                sum = first ? most : std::max(sum, most);
              else
                sum += v;
              first = false;
            }
          if (!a.max) sum /= static_cast<double>(std::max<int64_t>(rows * columns, 1));
          y[static_cast<size_t>(((r * channels + k) * a.height + ph) * a.width + pw)] = sum;
        }
  }
  store(c.out[0], y);
}

void run_nms(Call& c) {
  ir::NmsInput in;
  in.boxes = c.in[0].f32();
  in.scores = c.in[1].f32();
  in.batch = c.in[0].shape[0];
  in.count = c.in[0].shape[1];
  in.classes = c.in[1].shape[1];
  auto given = [&](size_t i) { return c.has(i) && c.in[i].elements() == 1; };
  if (given(2)) in.most = integer_at(c.in[2], 0);
  if (given(3)) in.iou = c.in[3].f32()[0];
  in.bounded = given(4);
  if (given(4)) in.score = c.in[4].f32()[0];
  const auto rows = ir::non_max_suppression(in, c.attrs<ir::NmsAttrs>());
  if (!rows.empty())
    std::memcpy(c.out[0].data, rows.data(),
                std::min(rows.size(), static_cast<size_t>(c.out[0].elements())) * 8);
}

const char* reject_nms(const Query& q) {
  for (size_t i = 3; i < 5; i++)
    if (q.has(i) && q.dtype(i) != DType::f32) return "limits are not f32";
  return nullptr;
}

void run_col2im(Call& c) {
  const auto& a = c.attrs<ir::Col2ImAttrs>();
  const auto x = reals(c.in[0]);
  const Shape& out = c.out[0].shape;
  const auto n = static_cast<size_t>(out.rank() - 2);
  std::vector<int64_t> kernel(n), stride(n, 1), dilation(n, 1), begin(n, 0), steps(n);
  int64_t taps = 1, positions = 1;
  for (size_t i = 0; i < n; i++) {
    kernel[i] = integer_at(c.in[2], static_cast<int64_t>(i));
    if (!a.strides.empty()) stride[i] = a.strides[i];
    if (!a.dilations.empty()) dilation[i] = a.dilations[i];
    const int64_t pads = a.pads.empty() ? 0 : a.pads[i] + a.pads[n + i];
    if (!a.pads.empty()) begin[i] = a.pads[i];
    steps[i] = (out[static_cast<int>(i) + 2] + pads - dilation[i] * (kernel[i] - 1) - 1) / stride[i] + 1;
    taps *= kernel[i];
    positions *= steps[i];
  }
  const int64_t spatial = out.elements(2);
  std::vector<double> y(static_cast<size_t>(out.elements()), 0.0);
  for (int64_t image = 0; image < out[0] * out[1]; image++)
    for (int64_t tap = 0; tap < taps; tap++)
      for (int64_t p = 0; p < positions; p++) {
        int64_t k = tap, q = p, to = 0, unit = 1;
        bool inside = true;
        for (size_t i = n; i-- > 0;) {
          const int64_t at = q % steps[i] * stride[i] - begin[i] + k % kernel[i] * dilation[i];
          inside = inside && at >= 0 && at < out[static_cast<int>(i) + 2];
          to += at * unit;
          unit *= out[static_cast<int>(i) + 2];
          k /= kernel[i];
          q /= steps[i];
        }
        if (inside)
          y[static_cast<size_t>(image * spatial + to)] +=
              x[static_cast<size_t>((image * taps + tap) * positions + p)];
      }
  store(c.out[0], y);
}

}  // namespace

void add_region_rows(KernelTable& t) {
  t.add({.op = Op::RoiAlign, .name = "roi_align_reference", .cost = 1000, .run = run_roi_align});
  t.add({.op = Op::NonMaxSuppression,
         .name = "nms_reference",
         .cost = 1000,
         .reject = reject_nms,
         .run = run_nms});
  t.add({.op = Op::Col2Im, .name = "col2im_reference", .cost = 1000, .run = run_col2im});
}

}  // namespace cyb::cpu
