// SPDX-License-Identifier: Apache-2.0
// The code kernels in plain C++.
#include "ops/quant/codes-inl.h"

namespace cyb {

extern const CodeKernels kCode_scalar;
const CodeKernels kCode_scalar = kCodeTable;

}  // namespace cyb
