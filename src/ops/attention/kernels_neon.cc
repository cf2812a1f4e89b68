// SPDX-License-Identifier: Apache-2.0
// The attention kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/attention/kernels-inl.h"

namespace cyb {

extern const AttentionKernels kAttention_neon;
constexpr AttentionKernels kTable = CYB_SIMD::make_attention_kernels();
const AttentionKernels kAttention_neon = kTable;

}  // namespace cyb
