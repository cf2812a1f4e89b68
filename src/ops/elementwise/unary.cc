// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise/unary.h"

#include "base/cpu_features.h"

namespace cyb {

extern const UnaryKernels kUnary_scalar, kUnary_avx2, kUnary_avx512, kUnary_neon;

const UnaryKernels& unary_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kUnary_avx512;
    case Isa::avx2:
      return kUnary_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kUnary_neon;
#endif
    default:
      return kUnary_scalar;
  }
}

}  // namespace cyb
