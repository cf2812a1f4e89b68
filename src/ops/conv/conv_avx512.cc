// SPDX-License-Identifier: Apache-2.0
// The convolution kernels in AVX-512.
#define CYB_SIMD simd_avx512
#define CYB_SIMD_TARGET HWY_AVX3
#include "ops/conv/depthwise-inl.h"
#include "ops/conv/transposed-inl.h"
#include "ops/conv/winograd-inl.h"

namespace cyb {

extern const ConvKernels kConv_avx512;
constexpr ConvKernels kTable = {
    Isa::avx512,          CYB_SIMD::kTileRows, CYB_SIMD::kTileVectors,     CYB_SIMD::product,
    CYB_SIMD::transposed, CYB_SIMD::depthwise, CYB_SIMD::kWinogradVectors, CYB_SIMD::winograd,
};
const ConvKernels kConv_avx512 = kTable;

}  // namespace cyb
