// SPDX-License-Identifier: Apache-2.0
// The code kernels for AVX-512.
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_avx512;
const CodeKernels kCode_avx512 = kCodeTable;

}  // namespace cyb
