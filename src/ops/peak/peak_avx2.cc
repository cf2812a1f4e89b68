// SPDX-License-Identifier: Apache-2.0
// Peak rates of AVX2.
#include "ops/peak/names_avx2-inl.h"

namespace cyb {
namespace {

// Products of one register with itself would be computed once for all chains: each is hidden.
inline Ints int_dot(Ints sum, Codes a, Codes b) {
  hide(b);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), _mm256_set1_epi16(1)));
}

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_avx2;
const PeakKernels kPeak_avx2 = {peak_f32, peak_int8};
}  // namespace cyb
