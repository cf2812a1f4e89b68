// SPDX-License-Identifier: Apache-2.0
// What vector instructions this processor and its system offer, in the groups that kernels are built for.
#pragma once

#include <cstdint>
#include <string>

namespace cyb {

// Ordered within one architecture: a kernel for a lower level runs on a higher one.
enum class Isa { scalar, neon, avx2, avx512 };  // avx2: with fma, f16c; avx512: F, BW, VL and DQ

const char* to_string(Isa isa);

// The best level of this machine; the environment variable CYB_ISA lowers it (its names: isa_name of dot_products.h).
Isa detect_isa();

// Whether kernels of `isa` run on a machine of level `machine`.
bool isa_runs_on(Isa isa, Isa machine);

// How far ahead a loop that waits for memory should ask for it, in bytes; 0 where the processor does as well by
// itself. What fetches ahead in Intel's stops at each 4 KB.
int64_t fetch_ahead();

// "AMD EPYC …, avx512vnni" or "…, amx" for status output.
std::string describe_cpu();

}  // namespace cyb
