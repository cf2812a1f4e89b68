// SPDX-License-Identifier: Apache-2.0
// NEON with the dot product of bytes (sdot).
#include "ops/matmul/simd_neon-inl.h"
#include "ops/matmul/tables.h"

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

#include "ops/matmul/q8_neon-inl.h"

namespace cyb {

const Q8Products q8_products_neon_dot = {{nullptr, nullptr, q8_acts<Q8>, q8_acts<Q4>, q8_acts<Ternary>}};

}  // namespace cyb
