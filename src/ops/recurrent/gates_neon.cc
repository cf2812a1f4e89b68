// SPDX-License-Identifier: Apache-2.0
// The gates of recurrent layers in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/recurrent/gates-inl.h"

namespace cyb {

extern const GateKernels kGate_neon;
constexpr GateKernels kTable = CYB_SIMD::make_gate_kernels();
const GateKernels kGate_neon = kTable;

}  // namespace cyb
