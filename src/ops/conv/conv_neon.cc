// SPDX-License-Identifier: Apache-2.0
// The convolution kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/conv/depthwise-inl.h"
#include "ops/conv/transposed-inl.h"
#include "ops/conv/winograd-inl.h"

namespace cyb {

extern const ConvKernels kConv_neon;
constexpr ConvKernels kTable = {
    Isa::neon,
    CYB_SIMD::kTileRows,
    CYB_SIMD::kTileVectors,
    CYB_SIMD::product,
    CYB_SIMD::transposed,
    CYB_SIMD::depthwise,
    CYB_SIMD::kWinogradVectors,
    CYB_SIMD::winograd,
};
const ConvKernels kConv_neon = kTable;

}  // namespace cyb
