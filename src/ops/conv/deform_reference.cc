// SPDX-License-Identifier: Apache-2.0
// DeformConv: a convolution whose taps are displaced by an operand, read between pixels, times a mask.
#include <algorithm>
#include <cmath>

#include "ops/common/reals.h"
#include "ops/conv/geometry.h"
#include "ops/rows.h"

namespace cyb::cpu {

namespace {

// Bilinear, zero outside the picture.
double between(const double* x, int64_t height, int64_t width, double py, double px) {
  if (!(py > -1 && py < static_cast<double>(height) && px > -1 && px < static_cast<double>(width))) return 0;
  const double top = std::floor(py), left = std::floor(px), dy = py - top, dx = px - left;
  const auto i = static_cast<int64_t>(top), j = static_cast<int64_t>(left);
  auto at = [&](int64_t r, int64_t k) {
    return r < 0 || r >= height || k < 0 || k >= width ? 0 : x[r * width + k];
  };
  return (1 - dy) * ((1 - dx) * at(i, j) + dx * at(i, j + 1)) +
         dy * ((1 - dx) * at(i + 1, j) + dx * at(i + 1, j + 1));
}

void run_deform_conv(Call& c) {
  const Geometry g = conv_geometry(c);
  const int64_t offset_groups = c.attrs<ir::DeformConvAttrs>().offset_groups;
  const auto x = reals(c.in[0]), w = reals(c.in[1]), offset = reals(c.in[2]), bias = reals_of(c, 3),
             mask = reals_of(c, 4);
  const Axis3 &rows = g.axes[1], &columns = g.axes[2];
  const int64_t positions = rows.in * columns.in, outputs = rows.out * columns.out, taps = g.taps();
  std::vector<double> y(static_cast<size_t>(c.out[0].elements()));
  for (int64_t n = 0; n < g.batch; n++)
    for (int64_t m = 0; m < g.out_channels; m++)
      for (int64_t o = 0; o < outputs; o++) {
        double sum = bias.empty() ? 0 : bias[static_cast<size_t>(m)];
        for (int64_t i = 0; i < g.group_in(); i++) {
          const int64_t channel = m / g.group_out() * g.group_in() + i;
          const int64_t group = channel / (g.in_channels / offset_groups);
          for (int64_t tap = 0; tap < taps; tap++) {
            const int64_t entry = (n * offset_groups + group) * taps + tap;
            const double dy = offset[static_cast<size_t>(2 * entry * outputs + o)];
            const double dx = offset[static_cast<size_t>((2 * entry + 1) * outputs + o)];
            const auto base_y = static_cast<double>(o / columns.out * rows.stride - rows.begin +
                                                    tap / columns.kernel * rows.dilation);
            const auto base_x = static_cast<double>(o % columns.out * columns.stride - columns.begin +
                                                    tap % columns.kernel * columns.dilation);
            double v = between(x.data() + (n * g.in_channels + channel) * positions, rows.in, columns.in,
                               base_y + dy, base_x + dx);
            if (!mask.empty()) v *= mask[static_cast<size_t>(entry * outputs + o)];
            sum += v * w[static_cast<size_t>((m * g.group_in() + i) * taps + tap)];
          }
        }
        y[static_cast<size_t>((n * g.out_channels + m) * outputs + o)] = sum;
      }
  store(c.out[0], y);
}

}  // namespace

void add_deform_conv_rows(KernelTable& t) {
  t.add({.op = ir::Op::DeformConv, .name = "deform_conv_reference", .cost = 1000, .run = run_deform_conv});
}

}  // namespace cyb::cpu
