// SPDX-License-Identifier: Apache-2.0
// The block decoders for processors with AVX2.
#include <cstddef>
#include <cstdint>

#include "import/gguf_types.h"

#define CYB_BLOCKS_ISA avx2
#include "import/gguf_blocks_impl.h"
