// SPDX-License-Identifier: Apache-2.0
// The activation kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/activation/activation-inl.h"

namespace cyb {

extern const ActivationKernels kActivation_scalar;
constexpr ActivationKernels kTable = CYB_SIMD::make_activation_kernels();
const ActivationKernels kActivation_scalar = kTable;

}  // namespace cyb
