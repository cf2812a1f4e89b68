// SPDX-License-Identifier: Apache-2.0
// The gates of recurrent layers in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/recurrent/gates-inl.h"

namespace cyb {

extern const GateKernels kGate_scalar;
constexpr GateKernels kTable = CYB_SIMD::make_gate_kernels();
const GateKernels kGate_scalar = kTable;

}  // namespace cyb
