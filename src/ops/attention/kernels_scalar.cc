// SPDX-License-Identifier: Apache-2.0
// The attention kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/attention/kernels-inl.h"

namespace cyb {

extern const AttentionKernels kAttention_scalar;
constexpr AttentionKernels kTable = CYB_SIMD::make_attention_kernels();
const AttentionKernels kAttention_scalar = kTable;

}  // namespace cyb
