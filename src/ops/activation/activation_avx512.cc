// SPDX-License-Identifier: Apache-2.0
// The activation kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/activation/activation-inl.h"

namespace cyb {

extern const ActivationKernels kActivation_avx512;
constexpr ActivationKernels kTable = CYB_SIMD::make_activation_kernels();
const ActivationKernels kActivation_avx512 = kTable;

}  // namespace cyb
