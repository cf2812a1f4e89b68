// SPDX-License-Identifier: Apache-2.0
// The convolution kernels in NEON.
#define CYB_SIMD simd_neon
#define CYB_SIMD_TARGET HWY_NEON
#include "ops/conv/depthwise-inl.h"
#include "ops/conv/nchw16c-inl.h"
#include "ops/conv/pointwise-inl.h"
#include "ops/conv/transposed-inl.h"
#include "ops/conv/winograd-inl.h"

namespace cyb {

extern const ConvKernels kConv_neon;
constexpr ConvKernels kTable = {
    .isa = Isa::neon,
    .rows = CYB_SIMD::kTileRows,
    .vectors = CYB_SIMD::kTileVectors,
    .product = CYB_SIMD::product,
    .transposed = CYB_SIMD::transposed,
    .depthwise = CYB_SIMD::depthwise,
    .pointwise_vectors = CYB_SIMD::kPointwiseVectors,
    .pointwise = CYB_SIMD::pointwise,
    .pointwise_floats = CYB_SIMD::pointwise_floats,
    .winograd_vectors = CYB_SIMD::kWinogradVectors,
    .winograd = CYB_SIMD::winograd,
    .nchw16c_vectors = CYB_SIMD::kNchw16cVectors,
    .nchw16c = CYB_SIMD::nchw16c,
};
const ConvKernels kConv_neon = kTable;

}  // namespace cyb
