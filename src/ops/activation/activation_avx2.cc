// SPDX-License-Identifier: Apache-2.0
// The activation kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/activation/activation-inl.h"

namespace cyb {

extern const ActivationKernels kActivation_avx2;
constexpr ActivationKernels kTable = CYB_SIMD::make_activation_kernels();
const ActivationKernels kActivation_avx2 = kTable;

}  // namespace cyb
