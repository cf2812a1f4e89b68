// SPDX-License-Identifier: Apache-2.0
// The kernel tables of the instruction sets, each defined in matmul_ISA.cc. Constant data: no code runs to
// make them.
#pragma once

#include "ops/matmul/matmul.h"

namespace cyb {

extern const MatmulKernels matmul_kernels_scalar;
#if defined(__x86_64__)
extern const MatmulKernels matmul_kernels_avx2;
extern const MatmulKernels matmul_kernels_avx512;
extern const MatmulKernels matmul_kernels_amx;  // for machines where has_amx(); its level is avx512 too
#elif defined(__aarch64__)
extern const MatmulKernels matmul_kernels_neon;
#endif

}  // namespace cyb
