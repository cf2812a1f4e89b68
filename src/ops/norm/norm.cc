// SPDX-License-Identifier: Apache-2.0
#include "ops/norm/norm.h"

#include "base/cpu_features.h"

namespace cyb {

extern const NormKernels kNorm_scalar, kNorm_avx2, kNorm_avx512, kNorm_neon;

const NormKernels& norm_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kNorm_avx512;
    case Isa::avx2:
      return kNorm_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kNorm_neon;
#endif
    default:
      return kNorm_scalar;
  }
}

}  // namespace cyb
