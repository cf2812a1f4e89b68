// SPDX-License-Identifier: Apache-2.0
#include "ops/quant/codes.h"

#include "base/cpu_features.h"

namespace cyb {

extern const CodeKernels kCode_scalar, kCode_avx2, kCode_avx512, kCode_neon;

const CodeKernels& code_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kCode_avx512;
    case Isa::avx2:
      return kCode_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kCode_neon;
#endif
    default:
      return kCode_scalar;
  }
}

}  // namespace cyb
