// SPDX-License-Identifier: Apache-2.0
// The attention kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/attention/kernels-inl.h"

namespace cyb {

extern const AttentionKernels kAttention_avx512;
constexpr AttentionKernels kTable = CYB_SIMD::make_attention_kernels();
const AttentionKernels kAttention_avx512 = kTable;

}  // namespace cyb
