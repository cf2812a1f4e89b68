// SPDX-License-Identifier: Apache-2.0
// Instructions for dot products of bytes that a processor may have beside the level of its vectors (cpu_features.h).
#pragma once

#include "base/cpu_features.h"

namespace cyb {

enum class Dots {
  none,
  avxvnni,     // with Isa::avx2: vpdpbusd of 256 bits without AVX-512
  avx512vnni,  // with Isa::avx512: vpdpbusd
  amx,         // with Isa::avx512: vpdpbusd, and tiles of 8-bit products (AMX-INT8), which the system has to grant
  neon_dot,    // with Isa::neon: sdot
  neon_i8mm,   // with Isa::neon: sdot and smmla
};

// What kernels of detect_isa() use. CYB_ISA chooses it too: avx2, avx512 and neon are without, avxvnni, avx512vnni, amx,
// neon-dot and neon-i8mm with.
Dots detect_dots();

// Whether this processor has it, whatever CYB_ISA says.
bool dots_run(Dots dots);

// The two together as CYB_ISA names them.
const char* isa_name(Isa isa, Dots dots);

}  // namespace cyb
