// SPDX-License-Identifier: Apache-2.0
// The code kernels for NEON.
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_neon;
const CodeKernels kCode_neon = kCodeTable;

}  // namespace cyb
