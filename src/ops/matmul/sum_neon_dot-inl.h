// SPDX-License-Identifier: Apache-2.0
// The sums that q8_neon-inl.h wants, by sdot: with dot products of bytes alone, and beside smmla.
#pragma once

#include "ops/matmul/simd_neon-inl.h"

namespace cyb {
namespace {

struct Sum {
  int32x4_t a = vdupq_n_s32(0), b = vdupq_n_s32(0);
  void add(const int8x16_t (&w0)[2], int8x16_t x0, const int8x16_t (&w1)[2], int8x16_t x1) {
    a = vdotq_s32(vdotq_s32(a, w0[0], x0), w1[0], x1);
    b = vdotq_s32(vdotq_s32(b, w0[1], x0), w1[1], x1);
  }
  VI get() const { return {a, b}; }
};

}  // namespace
}  // namespace cyb
