// SPDX-License-Identifier: Apache-2.0
#include "ops/activation/activation.h"

#include "base/cpu_features.h"

namespace cyb {

extern const ActivationKernels kActivation_scalar, kActivation_avx2, kActivation_avx512, kActivation_neon;

const ActivationKernels& activation_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kActivation_avx512;
    case Isa::avx2:
      return kActivation_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kActivation_neon;
#endif
    default:
      return kActivation_scalar;
  }
}

}  // namespace cyb
