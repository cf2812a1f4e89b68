// SPDX-License-Identifier: Apache-2.0
// The encoding arithmetic for any processor, and the choice among the variants.
#include "tensor/encode_kernels.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "base/cpu_features.h"

namespace cyb::encode_kernels {
namespace {
#include "tensor/encode_kernels.inc"
}  // namespace

const Table kBaseline = {max_bits, q8, q4, fixed};

const Table& table() {
#if defined(__x86_64__)
  static const bool avx2 = isa_runs_on(Isa::avx2, detect_isa());
  if (avx2) return kAvx2;
#endif
  return kBaseline;
}

}  // namespace cyb::encode_kernels
