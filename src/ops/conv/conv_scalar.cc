// SPDX-License-Identifier: Apache-2.0
// The convolution kernels in plain C++.
#define CYB_SIMD simd_scalar
#include "ops/conv/depthwise-inl.h"
#include "ops/conv/transposed-inl.h"
#include "ops/conv/winograd-inl.h"

namespace cyb {

extern const ConvKernels kConv_scalar;
constexpr ConvKernels kTable = {
    Isa::scalar,          CYB_SIMD::kTileRows, CYB_SIMD::kTileVectors,     CYB_SIMD::product,
    CYB_SIMD::transposed, CYB_SIMD::depthwise, CYB_SIMD::kWinogradVectors, CYB_SIMD::winograd,
};
const ConvKernels kConv_scalar = kTable;

}  // namespace cyb
