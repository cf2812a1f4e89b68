// SPDX-License-Identifier: Apache-2.0
// The activation kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/activation/activation-inl.h"

namespace cyb {

extern const ActivationKernels kActivation_neon;
constexpr ActivationKernels kTable = CYB_SIMD::make_activation_kernels();
const ActivationKernels kActivation_neon = kTable;

}  // namespace cyb
