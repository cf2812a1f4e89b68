// SPDX-License-Identifier: Apache-2.0
// A convolution or pooling of 1 to 3 axes as one of three axes (the missing ones have length 1), with pads
// settled.
#pragma once

#include <array>
#include <cstdint>

#include "backend/cpu/kernel.h"
#include "ir/ops/window.h"
#include "ops/conv/conv.h"

namespace cyb::cpu {

using Axis3 = ConvAxis;

struct Geometry {
  int64_t batch = 0, in_channels = 0, out_channels = 0, groups = 1;
  std::array<Axis3, 3> axes;

  int64_t group_in() const { return in_channels / groups; }
  int64_t group_out() const { return out_channels / groups; }
  int64_t in_positions() const { return axes[0].in * axes[1].in * axes[2].in; }
  int64_t out_positions() const { return axes[0].out * axes[1].out * axes[2].out; }
  int64_t taps() const { return axes[0].kernel * axes[1].kernel * axes[2].kernel; }
};

// Of a node whose shapes are known: Conv…, FusedConv, ConvTranspose…; Pool.
Geometry conv_geometry(const Call& c);
Geometry pool_geometry(const Call& c);

}  // namespace cyb::cpu
