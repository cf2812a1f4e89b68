// SPDX-License-Identifier: Apache-2.0
// Peak rate of byte products of AVX-512 with VNNI.
#include "ops/peak/names_avx512-inl.h"

namespace cyb {
namespace {

inline Ints int_dot(Ints sum, Codes a, Codes b) { return _mm512_dpbusd_epi32(sum, a, b); }

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_avx512vnni;
const PeakKernels kPeak_avx512vnni = {peak_f32, peak_int8};
}  // namespace cyb
