// SPDX-License-Identifier: Apache-2.0
// Kernel rows of convolutions, by method.
#pragma once

#include "backend/cpu/kernel.h"
#include "ops/conv/conv.h"

namespace cyb::cpu {

void add_conv_reference(KernelTable& table);

// What the rows share.
const char* reject_conv_types(const Query& query);
// Bias, residual and activation of a convolution or fused convolution.
ConvFinish conv_finish(const Call& call);

}  // namespace cyb::cpu
