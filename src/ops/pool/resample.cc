// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/resample.h"

#include "base/cpu_features.h"

namespace cyb {

extern const ResampleKernels kResample_scalar, kResample_avx2, kResample_avx512, kResample_neon;

const ResampleKernels& resample_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kResample_avx512;
    case Isa::avx2:
      return kResample_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kResample_neon;
#endif
    default:
      return kResample_scalar;
  }
}

}  // namespace cyb
