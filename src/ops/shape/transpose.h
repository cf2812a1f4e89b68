// SPDX-License-Identifier: Apache-2.0
// Transposition of matrices of 4-byte elements.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

// y[t·y_stride + i] = x[i·x_stride + t] for i below `rows` and t below `columns`.
using Transpose32 = void (*)(const uint32_t* x, int64_t x_stride, uint32_t* y, int64_t y_stride, int64_t rows,
                             int64_t columns);
Transpose32 transpose32(Isa isa);

}  // namespace cyb
