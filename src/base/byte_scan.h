// SPDX-License-Identifier: Apache-2.0
// Searches for single bytes in long texts, as scanners of megabytes need them.
#pragma once

#include <cstddef>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace cyb {

// The first of three bytes in [p, end), or end.
inline const char* find_any(const char* p, const char* end, char a, char b, char c) {
#if defined(__SSE2__)
  for (; end - p >= 16; p += 16) {
    const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i found =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(a)), _mm_cmpeq_epi8(v, _mm_set1_epi8(b))),
                     _mm_cmpeq_epi8(v, _mm_set1_epi8(c)));
    if (const int mask = _mm_movemask_epi8(found)) return p + __builtin_ctz(static_cast<unsigned>(mask));
  }
#endif
  while (p < end && *p != a && *p != b && *p != c) ++p;
  return p;
}

// Where `b` follows `a` at or after `from`; npos: nowhere.
inline size_t find_pair(std::string_view text, char a, char b, size_t from = 0) {
  size_t i = from;
#if defined(__SSE2__)
  for (; i + 17 <= text.size(); i += 16) {
    const __m128i first = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i));
    const __m128i second = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text.data() + i + 1));
    const int mask = _mm_movemask_epi8(
        _mm_and_si128(_mm_cmpeq_epi8(first, _mm_set1_epi8(a)), _mm_cmpeq_epi8(second, _mm_set1_epi8(b))));
    if (mask) return i + static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(mask)));
  }
#endif
  for (; i + 1 < text.size(); i++)
    if (text[i] == a && text[i + 1] == b) return i;
  return std::string_view::npos;
}

}  // namespace cyb
