// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/loops.h"

#include "base/cpu_features.h"

namespace cyb {

extern const LoopKernels kLoop_scalar, kLoop_avx2, kLoop_avx512, kLoop_neon;

const LoopKernels& loop_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kLoop_avx512;
    case Isa::avx2:
      return kLoop_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kLoop_neon;
#endif
    default:
      return kLoop_scalar;
  }
}

}  // namespace cyb
