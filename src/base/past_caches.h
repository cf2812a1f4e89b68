// SPDX-License-Identifier: Apache-2.0
// Stores that leave the caches alone where the processor has such: no line is waited for that others hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace cyb {

// Copies whole lines: both places and `bytes` are multiples of 64. finish_stores() comes before anyone else
// is told of them.
inline void store_past_caches(void* to, const void* from, size_t bytes) {
#if defined(__x86_64__)
  auto* out = static_cast<__m128i*>(to);
  const auto* in = static_cast<const __m128i*>(from);
  for (size_t i = 0; i < bytes / 16; i++) _mm_stream_si128(out + i, _mm_load_si128(in + i));
#else
  std::memcpy(to, from, bytes);
#endif
}

inline void finish_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace cyb
