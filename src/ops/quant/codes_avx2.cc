// SPDX-License-Identifier: Apache-2.0
// The code kernels for AVX2.
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_avx2;
const CodeKernels kCode_avx2 = kCodeTable;

}  // namespace cyb
