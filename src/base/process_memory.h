// SPDX-License-Identifier: Apache-2.0
// Memory of this process.
#pragma once

#include <cstdint>

namespace cyb {

struct ProcessMemory {
  uint64_t peak = 0;    // largest resident size so far (VmHWM)
  uint64_t mapped = 0;  // resident pages of mapped files now (RssFile)
};
ProcessMemory process_memory();

}  // namespace cyb
