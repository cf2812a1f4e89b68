// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/conv.h"

namespace cyb {

extern const ConvKernels kConv_scalar, kConv_avx2, kConv_avx512, kConv_neon;

const ConvKernels& conv_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kConv_avx512;
    case Isa::avx2:
      return kConv_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kConv_neon;
#endif
    default:
      return kConv_scalar;
  }
}

}  // namespace cyb
