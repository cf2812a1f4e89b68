// SPDX-License-Identifier: Apache-2.0
// The gates of recurrent layers in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/recurrent/gates-inl.h"

namespace cyb {

extern const GateKernels kGate_avx512;
constexpr GateKernels kTable = CYB_SIMD::make_gate_kernels();
const GateKernels kGate_avx512 = kTable;

}  // namespace cyb
