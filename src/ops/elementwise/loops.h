// SPDX-License-Identifier: Apache-2.0
// Plain loops over one run of elements of any type, which the compiler vectorizes for each instruction set:
// integer arithmetic, comparisons, logic, selection and conversions.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace cyb {

enum class Isa;

// Operands advance by 0 or 1 element.
enum class LoopOp : uint8_t { add, sub, mul, min, max, equal, less, less_equal, both, either, differ };
using BinaryLoop = void (*)(const void* a, int64_t a_step, const void* b, int64_t b_step, void* y, int64_t n);
// y = condition ? a : b
using SelectLoop = void (*)(const uint8_t* condition, int64_t step, const void* a, int64_t a_step,
                            const void* b, int64_t b_step, void* y, int64_t n);
using CastLoop = void (*)(const void* x, void* y, int64_t n);

// Null where there is none.
struct LoopKernels {
  BinaryLoop (*binary)(LoopOp op, DType type);
  SelectLoop (*select)(int element_bytes);
  CastLoop (*cast)(DType from, DType to);
};
const LoopKernels& loop_kernels(Isa isa);

}  // namespace cyb
