// SPDX-License-Identifier: Apache-2.0
// Peak rates of AVX-512 without VNNI.
#include "ops/peak/names_avx512-inl.h"

namespace cyb {
namespace {

// Products of one register with itself would be computed once for all chains: each is hidden.
inline Ints int_dot(Ints sum, Codes a, Codes b) {
  hide(b);
  return _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), _mm512_set1_epi16(1)));
}

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_avx512;
const PeakKernels kPeak_avx512 = {peak_f32, peak_int8};
}  // namespace cyb
