// SPDX-License-Identifier: Apache-2.0
// UTF-8 by table look-ups: each pair of neighbouring bytes, seen as three half bytes, has a set of faults
// that it may be; a fault that all three tables name is one. Method: Keiser and Lemire, "Validating UTF-8 in
// less than one instruction per byte", 2020.
#include <immintrin.h>

#include <cstring>

#include "base/utf8_check.h"

namespace cyb {
namespace {

// Faults of a pair (before, now).
constexpr uint8_t kShort = 1, kLong = 2;  // a continuation is missing, or is one too many
constexpr uint8_t kOverlong3 = 4, kOverlong2 = 32, kOverlong4 = 64;
constexpr uint8_t kLarge = 8, kLarge1000 = 64;  // above U+10FFFF; the same with a lead of F5 and more
constexpr uint8_t kSurrogate = 16;
constexpr uint8_t kTwo = 128;  // two continuations: right only after a lead of three or four
constexpr uint8_t kCarry = kShort | kLong | kTwo;

__m256i table(uint8_t a, uint8_t b, uint8_t c, uint8_t d, uint8_t e, uint8_t f, uint8_t g, uint8_t h,
              uint8_t i, uint8_t j, uint8_t k, uint8_t l, uint8_t m, uint8_t n, uint8_t o, uint8_t p) {
  alignas(16) const uint8_t row[16] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(row)));
}

template <int N>
__m256i bytes_before(__m256i now, __m256i previous) {
  return _mm256_alignr_epi8(now, _mm256_permute2x128_si256(previous, now, 0x21), 16 - N);
}

__m256i high_half(__m256i v) { return _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(15)); }

}  // namespace

bool is_utf8_avx2(std::string_view text) {
  const __m256i before_high = table(kLong, kLong, kLong, kLong, kLong, kLong, kLong, kLong, kTwo, kTwo, kTwo,
                                    kTwo, kShort | kOverlong2, kShort, kShort | kOverlong3 | kSurrogate,
                                    kShort | kLarge | kLarge1000 | kOverlong4);
  constexpr uint8_t kMore = kCarry | kLarge | kLarge1000;
  const __m256i before_low = table(kCarry | kOverlong3 | kOverlong2 | kOverlong4, kCarry | kOverlong2, kCarry,
                                   kCarry, kCarry | kLarge, kMore, kMore, kMore, kMore, kMore, kMore, kMore,
                                   kMore, kMore | kSurrogate, kMore, kMore);
  constexpr uint8_t kAny = kLong | kOverlong2 | kTwo;  // of a continuation
  const __m256i now_high =
      table(kShort, kShort, kShort, kShort, kShort, kShort, kShort, kShort,
            kAny | kOverlong3 | kLarge1000 | kOverlong4, kAny | kOverlong3 | kLarge,
            kAny | kSurrogate | kLarge, kAny | kSurrogate | kLarge, kShort, kShort, kShort, kShort);

  __m256i previous = _mm256_setzero_si256(), faults = _mm256_setzero_si256();
  auto check = [&](__m256i now) {
    // Two ASCII blocks in a row have no fault.
    if (_mm256_testz_si256(_mm256_or_si256(now, previous), _mm256_set1_epi8(static_cast<char>(0x80)))) {
      previous = now;
      return;
    }
    const __m256i before = bytes_before<1>(now, previous);
    const __m256i named = _mm256_and_si256(
        _mm256_and_si256(_mm256_shuffle_epi8(before_high, high_half(before)),
                         _mm256_shuffle_epi8(before_low, _mm256_and_si256(before, _mm256_set1_epi8(15)))),
        _mm256_shuffle_epi8(now_high, high_half(now)));
    // After a lead of three bytes the second continuation must be there, after one of four the third as well.
    const __m256i third = _mm256_subs_epu8(bytes_before<2>(now, previous), _mm256_set1_epi8(0xE0 - 0x80));
    const __m256i fourth = _mm256_subs_epu8(bytes_before<3>(now, previous), _mm256_set1_epi8(0xF0 - 0x80));
    const __m256i wanted =
        _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8(static_cast<char>(0x80)));
    faults = _mm256_or_si256(faults, _mm256_xor_si256(wanted, named));
    previous = now;
  };
  const char* p = text.data();
  size_t left = text.size();
  for (; left >= 32; left -= 32, p += 32) check(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  // The zeros behind the end make an unfinished character a fault; there is at least one.
  alignas(32) char rest[32] = {};
  std::memcpy(rest, p, left);
  check(_mm256_load_si256(reinterpret_cast<const __m256i*>(rest)));
  return _mm256_testz_si256(faults, faults) != 0;
}

}  // namespace cyb
