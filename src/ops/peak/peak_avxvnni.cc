// SPDX-License-Identifier: Apache-2.0
// Peak rates of AVX2 with AVX-VNNI.
#include "ops/peak/names_avx2-inl.h"

namespace cyb {
namespace {

inline Ints int_dot(Ints sum, Codes a, Codes b) { return _mm256_dpbusd_avx_epi32(sum, a, b); }

}  // namespace
}  // namespace cyb

#include "ops/peak/peak-inl.h"

namespace cyb {
extern const PeakKernels kPeak_avxvnni;
const PeakKernels kPeak_avxvnni = {peak_f32, peak_int8};
}  // namespace cyb
