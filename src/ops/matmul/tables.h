// SPDX-License-Identifier: Apache-2.0
// The kernel tables of the instruction sets, each defined in matmul_ISA.cc. Constant data: no code runs to
// make them.
#pragma once

#include "ops/matmul/matmul.h"

namespace cyb {

// Kernels of 8-bit activations that take the place of the level's own where the processor has the instructions.
struct Q8Products {
  void (*q8_acts[5])(const MatmulArgs& args, const MatmulRange& range);
};

extern const MatmulKernels matmul_kernels_scalar;
#if defined(__x86_64__)
extern const MatmulKernels matmul_kernels_avx2;
extern const MatmulKernels matmul_kernels_avx512;
extern const Q8Products q8_products_avxvnni;
extern const Q8Products q8_products_avx512vnni;
extern const Q8Products q8_products_amx;
#elif defined(__aarch64__)
extern const MatmulKernels matmul_kernels_neon;
extern const Q8Products q8_products_neon_dot;
extern const Q8Products q8_products_neon_i8mm;
#endif

}  // namespace cyb
