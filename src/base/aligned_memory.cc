// SPDX-License-Identifier: Apache-2.0
#include "base/aligned_memory.h"

#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "base/checked.h"

namespace cyb {

void* allocate_aligned(uint64_t bytes) {
  constexpr uint64_t kLine = 64, kLargePage = uint64_t{2} << 20;
  if (bytes > UINT64_MAX - kLargePage) return nullptr;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  // Below two pages, what the alignment wastes is too much.
  if (bytes >= 2 * kLargePage) {
    void* p = std::aligned_alloc(kLargePage, round_up(bytes, kLargePage));
    if (p) ::madvise(p, bytes, MADV_HUGEPAGE);  // a wish: what comes of it does not matter
    return p;
  }
#endif
  return std::aligned_alloc(kLine, round_up(bytes ? bytes : 1, kLine));
}

}  // namespace cyb
