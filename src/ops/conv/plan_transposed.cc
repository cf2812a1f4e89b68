// SPDX-License-Identifier: Apache-2.0
// Transposed convolutions as one convolution for each remainder of outputs by the strides.
#include <algorithm>

#include "base/checked.h"
#include "ops/conv/plan.h"

namespace cyb {
namespace {

// Output o of an axis gets input i by tap k where o + begin = i · stride + k · dilation. For o = m · stride +
// p that is i = m + shift, shift = (p + begin − k · dilation) / stride, where the division leaves nothing.
struct AxisTaps {
  std::vector<std::vector<std::pair<int64_t, int64_t>>> of_phase;  // (tap, shift), ascending taps
  int64_t least = 0, most = 0;                                     // shifts
};

AxisTaps taps_of(const ConvAxis& a) {
  AxisTaps t;
  bool any = false;
  for (int64_t p = 0; p < a.stride; p++) {
    t.of_phase.emplace_back();
    for (int64_t k = 0; k < a.kernel; k++) {
      const int64_t at = p + a.begin - k * a.dilation;
      if ((at % a.stride + a.stride) % a.stride != 0) continue;
      const int64_t shift = at / a.stride;
      t.of_phase.back().emplace_back(k, shift);
      t.least = any ? std::min(t.least, shift) : shift;
      t.most = any ? std::max(t.most, shift) : shift;
      any = true;
    }
  }
  return t;
}

}  // namespace

int64_t ConvTransposedArgs::floats() const {
  const int64_t tile = 16 * 16 * 4;  // no set of kernels has larger tiles
  return round_up<int64_t>(conv.blocks.floats, 16) + 2 * stride[2] * tile + 64;
}

void plan_transposed(ConvTransposedPlan* t, const ConvArgs& args, int max_rows, int vectors, int threads) {
  AxisTaps taps[3];
  ConvArgs& c = t->plan.args;
  c = args;
  t->args.taps = 1;
  for (int i = 0; i < 3; i++) {
    const ConvAxis& a = args.axes[i];
    taps[i] = taps_of(a);
    t->args.stride[i] = a.stride;
    t->args.out[i] = a.out;
    t->args.taps *= a.kernel;
    c.axes[i] = {};
    c.axes[i].in = a.in;
    c.axes[i].out = ceil_div(a.out, a.stride);
    c.axes[i].kernel = taps[i].most - taps[i].least + 1;
    c.axes[i].begin = -taps[i].least;
  }
  plan_blocks(&t->plan, max_rows, vectors, threads, {.keep_rows = true});
  // The plan's own offsets are those of (channel, shift) in the copy.
  const int64_t kd = c.axes[0].kernel, ky = c.axes[1].kernel, kx = c.axes[2].kernel;
  t->phase_begin = {0};
  t->offsets.clear();
  t->taps.clear();
  for (const auto& z : taps[0].of_phase)
    for (const auto& y : taps[1].of_phase)
      for (const auto& x : taps[2].of_phase) {
        for (int64_t channel = 0; channel < c.group_in; channel++)
          for (const auto& [k0, s0] : z)
            for (const auto& [k1, s1] : y)
              for (const auto& [k2, s2] : x) {
                const int64_t at =
                    ((channel * kd + s0 - taps[0].least) * ky + s1 - taps[1].least) * kx + s2 - taps[2].least;
                t->offsets.push_back(t->plan.offsets[static_cast<size_t>(at)]);
                t->taps.push_back(static_cast<int32_t>(
                    channel * t->args.taps + (k0 * args.axes[1].kernel + k1) * args.axes[2].kernel + k2));
              }
        t->phase_begin.push_back(static_cast<int64_t>(t->offsets.size()));
      }
  t->args.conv = c;
  t->args.phase_begin = t->phase_begin.data();
  t->args.offsets = t->offsets.data();
}

int64_t packed_transposed_floats(const ConvTransposedPlan& t) {
  const ConvArgs& c = t.args.conv;
  return c.groups * c.panels * t.args.taps * c.group_in * c.rows;
}

// w is [input channel][output channel of the group][tap].
void pack_transposed(const ConvTransposedPlan& t, const float* w, float* out) {
  const ConvArgs& c = t.args.conv;
  const int64_t taps = t.args.taps;
  for (int64_t g = 0; g < c.groups; g++)
    for (int64_t p = 0; p < c.panels; p++)
      for (const int32_t tap : t.taps)
        for (int64_t i = 0; i < c.rows; i++) {
          const int64_t channel = p * c.rows + i, in = g * c.group_in + tap / taps;
          *out++ = channel < c.group_out ? w[(in * c.group_out + channel) * taps + tap % taps] : 0.0f;
        }
}

}  // namespace cyb
