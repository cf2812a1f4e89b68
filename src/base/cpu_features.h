// SPDX-License-Identifier: Apache-2.0
// What vector instructions this processor and its system offer, in the groups that kernels are built for.
#pragma once

#include <string>

namespace cyb {

// Ordered within one architecture: a kernel for a lower level runs on a higher one.
enum class Isa { scalar, neon, avx2, avx512 };  // avx2: with fma, f16c; avx512: F, BW, VL, DQ and VNNI

const char* to_string(Isa isa);

// The best level of this machine; the environment variable CYB_ISA (scalar, avx2, avx512, neon) lowers it.
Isa detect_isa();

// Whether kernels of `isa` run on a machine of level `machine`.
bool isa_runs_on(Isa isa, Isa machine);

// "AMD EPYC …, avx512" or "…, amx" for status output.
std::string describe_cpu();

}  // namespace cyb
