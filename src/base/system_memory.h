// SPDX-License-Identifier: Apache-2.0
// How much memory there is.
#pragma once

#include <cstdint>

namespace cyb {

// Bytes that this process may use at most: the machine's memory, or the limit of its control group. 0: not
// known.
uint64_t usable_memory();

}  // namespace cyb
