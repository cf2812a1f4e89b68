// SPDX-License-Identifier: Apache-2.0
// The gates of recurrent layers in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/recurrent/gates-inl.h"

namespace cyb {

extern const GateKernels kGate_avx2;
constexpr GateKernels kTable = CYB_SIMD::make_gate_kernels();
const GateKernels kGate_avx2 = kTable;

}  // namespace cyb
