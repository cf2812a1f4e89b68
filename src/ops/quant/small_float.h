// SPDX-License-Identifier: Apache-2.0
// Floats of 4 to 8 bits as codes: rounding to nearest even, subnormals, what each format does beyond its
// range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "ir/ops/recurrent.h"

namespace cyb::cpu {

struct SmallFormat {
  int exponent, mantissa, bias;
  uint8_t largest;   // code of the largest finite value
  int inf, nan;      // codes, −1: the format has none
  bool signed_zero;  // else the code of −0 is NaN
};

inline SmallFormat format_of(ir::SmallFloat f) {
  switch (f) {
    case ir::SmallFloat::e4m3fn:
      return {4, 3, 7, 0x7e, -1, 0x7f, true};
    case ir::SmallFloat::e4m3fnuz:
      return {4, 3, 8, 0x7f, -1, 0x80, false};
    case ir::SmallFloat::e5m2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e, true};
    case ir::SmallFloat::e5m2fnuz:
      return {5, 2, 16, 0x7f, -1, 0x80, false};
    case ir::SmallFloat::e2m1:
      return {2, 1, 1, 0x07, -1, -1, true};
    case ir::SmallFloat::e2m3:
      return {2, 3, 1, 0x1f, -1, -1, true};
    case ir::SmallFloat::e3m2:
      return {3, 2, 3, 0x1f, -1, -1, true};
    case ir::SmallFloat::e8m0:
      break;
  }
  return {8, 0, 127, 0xfe, -1, 0xff, false};
}

// A power of two, 2^(code − 127), of |value|.
inline uint8_t encode_e8m0(float value, ir::SmallRounding round, bool saturate) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  uint32_t exponent = bits >> 23 & 0xff;
  if (exponent == 0xff) return 0xff;
  bool up = false;
  switch (round) {
    case ir::SmallRounding::nearest:  // a tie goes up, but for the smallest
      up = (bits & 0x400000) && ((bits & 0x3fffff) || exponent > 0);
      break;
    case ir::SmallRounding::up:
      up = bits & 0x7fffff;
      break;
    case ir::SmallRounding::down:
      break;
  }
  if (up && !(saturate && exponent == 0xfe)) exponent++;
  return static_cast<uint8_t>(exponent);
}

inline uint8_t encode_small(double value, const ir::SmallFloatAttrs& a) {
  if (a.format == ir::SmallFloat::e8m0) return encode_e8m0(static_cast<float>(value), a.round, a.saturate);
  const SmallFormat f = format_of(a.format);
  const auto sign = static_cast<uint8_t>(std::signbit(value) ? 1u << (f.exponent + f.mantissa) : 0u);
  // Without a code for NaN it becomes a zero of its sign.
  if (std::isnan(value)) return static_cast<uint8_t>(f.signed_zero ? std::max(f.nan, 0) | sign : f.nan);
  const double magnitude = std::fabs(value);
  uint32_t code = 1u << 16;
  if (magnitude == 0) {
    code = 0;
  } else if (std::isfinite(magnitude)) {
    int e = std::ilogb(magnitude);
    if (e < 1 - f.bias) e = 1 - f.bias;
    if (e <= 1 << f.exponent) {
      // Exact: a power of two; then one rounding, ties to even.
      const auto m = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, f.mantissa - e)));
      // A carry into the next exponent comes out of the addition.
      code = m < 1u << f.mantissa
                 ? m
                 : (static_cast<uint32_t>(e + f.bias) << f.mantissa) + (m - (1u << f.mantissa));
    }
  }
  if (code > f.largest) {
    if (a.saturate || f.nan < 0) return static_cast<uint8_t>(f.largest | sign);
    if (f.inf >= 0) return static_cast<uint8_t>(f.inf | sign);
    return static_cast<uint8_t>(f.signed_zero ? f.nan | sign : f.nan);
  }
  return static_cast<uint8_t>(code == 0 && !f.signed_zero ? 0 : code | sign);
}

inline double decode_small(uint8_t byte, ir::SmallFloat format) {
  const SmallFormat f = format_of(format);
  if (format == ir::SmallFloat::e8m0)
    return byte == 0xff ? NAN : std::ldexp(1.0, static_cast<int>(byte) - 127);
  const int bits = f.exponent + f.mantissa;
  const uint32_t magnitude = byte & ((1u << bits) - 1);
  const bool negative = byte >> bits & 1;
  if (!f.signed_zero && byte == 0x80) return NAN;
  if (f.signed_zero && f.nan >= 0 && magnitude > f.largest)
    return static_cast<int>(magnitude) == f.inf ? (negative ? -INFINITY : INFINITY) : NAN;
  const auto e = static_cast<int>(magnitude >> f.mantissa);
  const double m = magnitude & ((1u << f.mantissa) - 1);
  const double v = e == 0 ? std::ldexp(m, 1 - f.bias - f.mantissa)
                          : std::ldexp(m + (1 << f.mantissa), e - f.bias - f.mantissa);
  return negative ? -v : v;
}

}  // namespace cyb::cpu
