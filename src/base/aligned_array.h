// SPDX-License-Identifier: Apache-2.0
// Large tables of plain values, in large pages where the system lends some.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#include "base/aligned_memory.h"

namespace cyb {

struct FreeAligned {
  void operator()(void* p) const { std::free(p); }
};
template <class T>
using AlignedArray = std::unique_ptr<T[], FreeAligned>;

// Not set to anything yet; throws std::bad_alloc.
template <class T>
AlignedArray<T> make_aligned(uint64_t count) {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);
  void* p = count > UINT64_MAX / sizeof(T) ? nullptr : allocate_aligned(count * sizeof(T));
  if (!p) throw std::bad_alloc();
  return AlignedArray<T>(static_cast<T*>(p));
}

}  // namespace cyb
