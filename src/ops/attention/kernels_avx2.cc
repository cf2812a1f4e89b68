// SPDX-License-Identifier: Apache-2.0
// The attention kernels in AVX2.
#define CYB_SIMD simd_avx2
#define CYB_SIMD_TARGET HWY_AVX2
#include "ops/attention/kernels-inl.h"

namespace cyb {

extern const AttentionKernels kAttention_avx2;
constexpr AttentionKernels kTable = CYB_SIMD::make_attention_kernels();
const AttentionKernels kAttention_avx2 = kTable;

}  // namespace cyb
