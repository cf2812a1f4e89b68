// SPDX-License-Identifier: Apache-2.0
#include "ops/reduce/reduce_ops.h"

#include "base/cpu_features.h"

namespace cyb {

extern const ReduceKernels kReduce_scalar, kReduce_avx2, kReduce_avx512, kReduce_neon;

const ReduceKernels& reduce_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kReduce_avx512;
    case Isa::avx2:
      return kReduce_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kReduce_neon;
#endif
    default:
      return kReduce_scalar;
  }
}

}  // namespace cyb
