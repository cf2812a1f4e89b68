// SPDX-License-Identifier: Apache-2.0
#include "ops/rope/rope.h"

#include <cmath>

#include "base/cpu_features.h"

namespace cyb {

extern const RopeKernels kRope_scalar, kRope_avx2, kRope_avx512, kRope_neon;

const RopeKernels& rope_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kRope_avx512;
    case Isa::avx2:
      return kRope_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kRope_neon;
#endif
    default:
      return kRope_scalar;
  }
}

// In f64 with plain operations, so that it is the same on every machine: the C library's functions are not.
void rope_sin_cos(float angle, float* sine, float* cosine) {
  const double x = angle;
  if (!(std::fabs(x) < 1e6)) {  // the reduction below is exact to 2^20 quarter turns
    *sine = static_cast<float>(std::sin(x));
    *cosine = static_cast<float>(std::cos(x));
    return;
  }
  constexpr double kMagic = 6755399441055744.0;  // 1.5·2^52: adding it rounds to an integer
  constexpr double kHead = 1.57079632673412561417e+00,
                   kTail = 6.07710050650619224932e-11;  // π/2 = head + tail
  const double turns = (x * 0.63661977236758134308 + kMagic) - kMagic;
  const double r = (x - turns * kHead) - turns * kTail;  // the head has 33 bits: that product is exact
  const double z = r * r;
  const double s =
      r +
      r * z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800)))));
  const double c =
      1.0 + z * (-1.0 / 2 +
                 z * (1.0 / 24 +
                      z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z * (1.0 / 479001600))))));
  const int quadrant = static_cast<int>(turns) & 3;
  const double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
  *sine = static_cast<float>(quadrant & 2 ? -a : a);
  *cosine = static_cast<float>((quadrant + 1) & 2 ? -b : b);
}

void rope_table(const RopeTableArgs& a, int64_t row_begin, int64_t row_end) {
  for (int64_t row = row_begin; row < row_end; ++row)
    for (int32_t i = 0; i < a.pairs; ++i) {
      const int64_t axis = a.axis_of ? a.axis_of[i] : 0;
      const float angle = static_cast<float>(a.positions[axis * a.axis_stride + row]) * a.inv_freq[i];
      float sine, cosine;
      rope_sin_cos(angle, &sine, &cosine);
      a.cos[row * a.pairs + i] = cosine * a.attention_factor;
      a.sin[row * a.pairs + i] = sine * a.attention_factor;
    }
}

}  // namespace cyb
