// SPDX-License-Identifier: Apache-2.0
// UTF-8: reading and writing code points, and what to do with bytes that are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace cyb {

constexpr char32_t kReplacement = 0xFFFD;

// The code point at `text[*pos]`, advancing *pos. The text must be valid UTF-8 (see utf8_sanitize).
inline char32_t utf8_next(std::string_view text, size_t* pos) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  size_t i = *pos;
  unsigned char c = byte(i);
  if (c < 0x80) {
    *pos = i + 1;
    return c;
  }
  if (c < 0xE0) {
    *pos = i + 2;
    return (c & 0x1Fu) << 6 | (byte(i + 1) & 0x3Fu);
  }
  if (c < 0xF0) {
    *pos = i + 3;
    return (c & 0x0Fu) << 12 | (byte(i + 1) & 0x3Fu) << 6 | (byte(i + 2) & 0x3Fu);
  }
  *pos = i + 4;
  return (c & 0x07u) << 18 | (byte(i + 1) & 0x3Fu) << 12 | (byte(i + 2) & 0x3Fu) << 6 | (byte(i + 3) & 0x3Fu);
}

// Bytes of the code point that starts with this byte of valid UTF-8.
inline size_t utf8_length(char first) {
  auto c = static_cast<unsigned char>(first);
  return c < 0x80 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
}

// Start of the code point that ends before `pos` > 0.
inline size_t utf8_previous(std::string_view text, size_t pos) {
  do --pos;
  while (pos > 0 && (static_cast<unsigned char>(text[pos]) & 0xC0) == 0x80);
  return pos;
}

// Code points of valid UTF-8.
int64_t utf8_count(std::string_view text);

void utf8_append(std::string* out, char32_t code_point);

struct Utf8Prefix {
  size_t length;    // bytes of the maximal subpart that starts here, at least 1
  bool valid;       // a whole code point
  bool incomplete;  // more bytes could make it whole
};
// What stands at the start of `bytes` (not empty), as Unicode's "substitution of maximal subparts" cuts it.
Utf8Prefix utf8_prefix(std::string_view bytes);

bool utf8_valid(std::string_view bytes);

// Each maximal invalid part becomes U+FFFD, as Python's bytes.decode(errors="replace") does.
std::string utf8_sanitize(std::string_view bytes);

}  // namespace cyb
