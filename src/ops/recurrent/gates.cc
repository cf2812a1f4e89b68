// SPDX-License-Identifier: Apache-2.0
#include "ops/recurrent/gates.h"

#include "base/cpu_features.h"

namespace cyb {

extern const GateKernels kGate_scalar, kGate_avx2, kGate_avx512, kGate_neon;

const GateKernels& gate_kernels(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx512:
      return kGate_avx512;
    case Isa::avx2:
      return kGate_avx2;
#elif defined(__aarch64__)
    case Isa::neon:
      return kGate_neon;
#endif
    default:
      return kGate_scalar;
  }
}

}  // namespace cyb
