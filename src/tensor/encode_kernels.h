// SPDX-License-Identifier: Apache-2.0
// The arithmetic of encoding, on runs of whole blocks; compiled once for each instruction set from
// encode_kernels.inc. All variants give the same bits: f64 divisions and roundings, no fused operations.
#pragma once

#include <cstdint>

namespace cyb::encode_kernels {

struct Errors {
  double sum_squares = 0, sum_error_squares = 0, max_error = 0;
};

struct Table {
  // Largest bit pattern of |x|: above 0x7f7fffff there is a NaN or infinity.
  uint32_t (*max_bits)(const float* x, int64_t n);
  // 32·n values → n scales and 32·n quants. Scales are not checked: the caller knows that they fit.
  void (*q8)(const float* x, int64_t n, int frac_bits, int16_t* scales, int8_t* quants, Errors* errors);
  // Quants −8…7.
  void (*q4)(const float* x, int64_t n, int frac_bits, bool searched, int16_t* scales, int8_t* quants,
             Errors* errors);
  // rint(x · 2^frac_bits), which the caller knows to fit.
  void (*fixed)(const float* x, int64_t n, int frac_bits, int32_t* out, Errors* errors);
};

extern const Table kBaseline;
extern const Table kAvx2;

const Table& table();  // the best of this machine

}  // namespace cyb::encode_kernels
