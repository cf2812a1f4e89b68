// SPDX-License-Identifier: Apache-2.0
// What reference and fast kernels of reductions share.
#pragma once

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

// The axes that a reduce_* node goes over, as bits.
uint32_t reduced_axes(const Call& c);
// By definition, over any axes.
void reduce_reference(Call& c);

}  // namespace cyb::cpu
