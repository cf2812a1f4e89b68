// SPDX-License-Identifier: Apache-2.0
#include "ops/pool/pool.h"

namespace cyb {

extern const PoolKernels kPool_scalar, kPool_avx2, kPool_avx512, kPool_neon;

const PoolKernels& pool_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kPool_avx512;
    case Isa::avx2:
      return kPool_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kPool_neon;
#endif
    default:
      return kPool_scalar;
  }
}

}  // namespace cyb
