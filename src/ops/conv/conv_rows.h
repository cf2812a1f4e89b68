// SPDX-License-Identifier: Apache-2.0
// Kernel rows of convolutions, by method.
#pragma once

#include "backend/cpu/kernel.h"
#include "ir/ops/conv.h"
#include "ops/conv/conv.h"

namespace cyb::cpu {

void add_conv_reference(KernelTable& table);
void add_conv_winograd(KernelTable& table);
void add_conv_pointwise(KernelTable& table);
void add_conv_nchw16c(KernelTable& table);

// What the rows share.
// Why no fast kernel takes the node: types, a residual that broadcasts.
const char* reject_conv(const Query& query);
// The same, and convolutions of more taps than a block's copy should have.
const char* reject_product(const Query& query);
const ir::ConvAttrs& conv_attrs(const ir::Node& node);
// Bias, residual and activation of a convolution or fused convolution.
ConvFinish conv_finish(const Call& call);
// KernelRow::layouts: x of either layout, the residual of the result's.
void conv_layouts(Call& call);

}  // namespace cyb::cpu
