// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/geometry.h"

namespace cyb::cpu {

using ir::Op;

namespace {

std::vector<int64_t> spatial(const Shape& s) { return {s.begin() + 2, s.end()}; }

void fill(Geometry& g, const Call& c, std::vector<ir::Window> windows, bool transposed) {
  const Shape &x = c.in[0].shape, &y = c.out[0].shape;
  g.batch = x[0];
  g.in_channels = x[1];
  g.out_channels = y[1];
  const size_t first = 3 - windows.size();
  for (size_t i = 0; i < windows.size(); i++) {
    const int axis = static_cast<int>(i) + 2;
    ir::Window& w = windows[i];
    const int64_t out = transposed ? w.transposed_outputs(x[axis]) : w.outputs(x[axis]);
    g.axes[first + i] = {x[axis], out, w.kernel, w.stride, w.dilation, w.begin};
  }
}

}  // namespace

Geometry conv_geometry(const Call& c) {
  Geometry g;
  switch (c.node->op) {
    case Op::ConvTranspose1d:
    case Op::ConvTranspose2d:
    case Op::ConvTranspose3d: {
      const auto& a = c.attrs<ir::ConvTransposeAttrs>();
      g.groups = a.groups;
      fill(g, c, windows_of(a, spatial(c.in[1].shape)), true);
      break;
    }
    case Op::FusedConv: {
      const auto& a = c.attrs<ir::FusedConvAttrs>();
      g.groups = a.groups;
      fill(g, c, windows_of(a, spatial(c.in[1].shape)), false);
      g.out_channels = c.in[1].shape[0];  // a residual may broadcast the result further
      break;
    }
    default: {
      const auto& a = c.attrs<ir::ConvAttrs>();
      g.groups = a.groups;
      fill(g, c, windows_of(a, spatial(c.in[1].shape)), false);
      break;
    }
  }
  return g;
}

Geometry pool_geometry(const Call& c) {
  Geometry g;
  fill(g, c, windows_of(c.attrs<ir::PoolAttrs>()), false);
  return g;
}

}  // namespace cyb::cpu
