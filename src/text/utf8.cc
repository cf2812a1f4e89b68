// SPDX-License-Identifier: Apache-2.0
#include "text/utf8.h"

#include <algorithm>
#include <cstring>

#include "base/utf8_check.h"

namespace cyb {

int64_t utf8_count(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

void utf8_append(std::string* out, char32_t c) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xC0 | c >> 6));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | c >> 12));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | c >> 18));
    out->push_back(static_cast<char>(0x80 | (c >> 12 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

Utf8Prefix utf8_prefix(std::string_view bytes) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned char c = at(0);
  if (c < 0x80) return {1, true, false};
  size_t need = c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
  if (need == 0) return {1, false, false};
  // The second byte excludes overlong forms, surrogates and code points above U+10FFFF.
  unsigned low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
  unsigned high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < need; ++i) {
    if (i >= bytes.size()) return {i, false, true};
    if (at(i) < low || at(i) > high) return {i, false, false};
    low = 0x80;
    high = 0xBF;
  }
  return {need, true, false};
}

namespace {

// Length of the leading valid part.
size_t valid_length(std::string_view bytes) {
  size_t i = 0;
  while (i < bytes.size()) {
    uint64_t word;
    if (bytes.size() - i >= 8) {
      std::memcpy(&word, bytes.data() + i, 8);
      if ((word & 0x8080808080808080ull) == 0) {
        i += 8;
        continue;
      }
    }
    Utf8Prefix p = utf8_prefix(bytes.substr(i));
    if (!p.valid) return i;
    i += p.length;
  }
  return i;
}

}  // namespace

bool utf8_valid(std::string_view bytes) { return is_utf8(bytes); }

std::string utf8_sanitize(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    size_t n = valid_length(bytes);
    out.append(bytes.substr(0, n));
    bytes.remove_prefix(n);
    if (bytes.empty()) break;
    out += "\xEF\xBF\xBD";
    bytes.remove_prefix(utf8_prefix(bytes).length);
  }
  return out;
}

}  // namespace cyb
