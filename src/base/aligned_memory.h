// SPDX-License-Identifier: Apache-2.0
// Memory for buffers of values and weights.
#pragma once

#include <cstdint>

namespace cyb {

// Aligned to 64 bytes at least; large pieces in large pages, where the system lends some to who asks: reading
// and writing them is up to twice as fast. Null where there is none. To be given back by std::free.
void* allocate_aligned(uint64_t bytes);

}  // namespace cyb
