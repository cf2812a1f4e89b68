// SPDX-License-Identifier: Apache-2.0
#include "ops/shape/transpose.h"

#include "base/cpu_features.h"

namespace cyb {

extern const Transpose32 kTranspose_scalar, kTranspose_avx2, kTranspose_avx512, kTranspose_neon;

Transpose32 transpose32(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kTranspose_avx512;
    case Isa::avx2:
      return kTranspose_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kTranspose_neon;
#endif
    default:
      return kTranspose_scalar;
  }
}

}  // namespace cyb
