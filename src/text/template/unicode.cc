// SPDX-License-Identifier: Apache-2.0
// Text by code point: utf8proc's tables, and the few mappings of Python's str that it lacks.
#include "text/template/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>

#include "text/template/case_tables.inc"
#include "text/utf8.h"

namespace cyb::jinja {
namespace {

template <size_t N>
bool in_ranges(const Range (&ranges)[N], char32_t c) {
  auto it = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                             [](char32_t value, const Range& range) { return value < range.first; });
  return it != std::begin(ranges) && c <= std::prev(it)->last;
}

template <size_t N>
const char* find_special(const SpecialCase (&table)[N], char32_t c) {
  auto it = std::lower_bound(std::begin(table), std::end(table), c,
                             [](const SpecialCase& row, char32_t value) { return row.from < value; });
  return it != std::end(table) && it->from == c ? it->to : nullptr;
}

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }

bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK:
      return true;
    default:
      break;
  }
  constexpr std::u32string_view others =
      U"'.:\u00b7\u0387\u055f\u05f4\u2018\u2019\u2024\u2027\ufe13\ufe52\ufe55\uff07\uff0e\uff1a";
  return others.find(c) != others.npos;
}

void append_upper(std::string& out, char32_t c) {
  if (const char* special = find_special(kSpecialUpper, c)) {
    out += special;
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
  }
}

void append_title(std::string& out, char32_t c) {
  if (const char* special = find_special(kSpecialTitle, c)) {
    out += special;
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
  }
}

// A capital sigma is written differently at the end of a word.
bool is_final_sigma(std::string_view text, size_t start, size_t end) {
  bool cased_before = false;
  while (start > 0) {
    char32_t c = previous_code_point(text, start);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  while (end < text.size()) {
    char32_t c = next_code_point(text, end);
    if (!is_case_ignorable(c)) return !is_cased(c);
  }
  return true;
}

void append_lower(std::string& out, std::string_view text, size_t start, size_t end, char32_t c) {
  if (c == 0x130) {
    out += "i\u0307";
  } else if (c == 0x3A3) {
    append_utf8(out, is_final_sigma(text, start, end) ? 0x3C2 : 0x3C3);
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

template <class Append>
std::string convert(std::string_view text, Append append) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    char32_t c = next_code_point(text, at);
    append(out, start, at, c);
  }
  return out;
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  const auto* data = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    utf8proc_int32_t c;
    utf8proc_ssize_t n = utf8proc_iterate(data + at, static_cast<utf8proc_ssize_t>(text.size() - at), &c);
    if (n <= 0) return false;
    at += static_cast<size_t>(n);
  }
  return true;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

char32_t next_code_point(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(i < text.size() ? text[i] : 0));
  };
  char32_t first = byte(at);
  if (first < 0x80) {
    ++at;
    return first;
  }
  size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  char32_t c = length == 4 ? first & 0x07 : length == 3 ? first & 0x0F : first & 0x1F;
  for (size_t i = 1; i < length; ++i) c = c << 6 | (byte(at + i) & 0x3F);
  at = std::min(at + length, text.size());
  return c;
}

char32_t previous_code_point(std::string_view text, size_t& at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  size_t start = at;
  return next_code_point(text, start);
}

void append_utf8(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | c >> 6);
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | c >> 12);
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | c >> 18);
    out += static_cast<char>(0x80 | (c >> 12 & 0x3F));
    out += static_cast<char>(0x80 | (c >> 6 & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

std::string utf8(char32_t c) {
  std::string out;
  append_utf8(out, c);
  return out;
}

size_t count_code_points(std::string_view text) { return static_cast<size_t>(utf8_count(text)); }

size_t byte_offset(std::string_view text, size_t index) {
  size_t at = 0;
  while (index > 0 && at < text.size()) {
    next_code_point(text, at);
    --index;
  }
  return at;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alpha(char32_t c) {
  if (c < 0x80) return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

bool is_decimal(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : category(c) == UTF8PROC_CATEGORY_ND; }
bool is_digit(char32_t c) { return is_decimal(c) || in_ranges(kOtherDigit, c); }

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  utf8proc_category_t k = category(c);
  return (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO) || in_ranges(kOtherNumeric, c);
}

bool is_alnum(char32_t c) { return is_alpha(c) || is_numeric(c); }
bool is_lower(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LL || in_ranges(kOtherLower, c); }
bool is_upper(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LU || in_ranges(kOtherUpper, c); }
bool is_title(char32_t c) { return category(c) == UTF8PROC_CATEGORY_LT; }
bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7F;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    default:
      return true;
  }
}

bool is_identifier_start(char32_t c) {
  return c == '_' || is_alpha(c) || (c >= 0x80 && category(c) == UTF8PROC_CATEGORY_NL);
}

bool is_identifier_part(char32_t c) {
  if (is_identifier_start(c) || is_decimal(c)) return true;
  if (c < 0x80) return false;
  utf8proc_category_t k = category(c);
  return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC || c == 0xB7;
}

std::string to_upper(std::string_view text) {
  return convert(text, [](std::string& out, size_t, size_t, char32_t c) { append_upper(out, c); });
}

std::string to_lower(std::string_view text) {
  return convert(text, [&](std::string& out, size_t start, size_t end, char32_t c) {
    append_lower(out, text, start, end, c);
  });
}

std::string to_title(std::string_view text) {
  bool inside = false;
  return convert(text, [&](std::string& out, size_t start, size_t end, char32_t c) {
    if (inside) {
      append_lower(out, text, start, end, c);
    } else {
      append_title(out, c);
    }
    inside = is_cased(c);
  });
}

std::string to_capitalized(std::string_view text) {
  return convert(text, [&](std::string& out, size_t start, size_t end, char32_t c) {
    if (start == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text, start, end, c);
    }
  });
}

std::string to_casefold(std::string_view text) {
  return convert(text, [](std::string& out, size_t, size_t, char32_t c) {
    utf8proc_int32_t folded[8];
    int boundary = 0;
    utf8proc_ssize_t n =
        utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), folded, 8, UTF8PROC_CASEFOLD, &boundary);
    for (utf8proc_ssize_t i = 0; i < n; ++i) append_utf8(out, static_cast<char32_t>(folded[i]));
  });
}

std::string to_swapped_case(std::string_view text) {
  return convert(text, [&](std::string& out, size_t start, size_t end, char32_t c) {
    if (is_upper(c)) {
      append_lower(out, text, start, end, c);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_utf8(out, c);
    }
  });
}

std::string_view strip_left(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    if (!is_space(next_code_point(text, at))) return text.substr(start);
  }
  return {};
}

std::string_view strip_right(std::string_view text) {
  for (size_t at = text.size(); at > 0;) {
    size_t end = at;
    if (!is_space(previous_code_point(text, at))) return text.substr(0, end);
  }
  return {};
}

size_t line_end_at(std::string_view text, size_t at) {
  size_t end = at;
  char32_t c = next_code_point(text, end);
  if (c == '\r' && end < text.size() && text[end] == '\n') return 2;
  bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
  return ends ? end - at : 0;
}

}  // namespace cyb::jinja
