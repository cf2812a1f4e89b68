// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>

#include "base/error.h"
#include "text/utf8.h"

namespace cyb {
namespace {

struct CodeRange {
  uint32_t first, last;
};
struct LowerRange {
  uint32_t first, last;
  int32_t stride, delta;
};
struct ShadowRange {
  uint32_t first, last, proxy;
};

#include "text/unicode_tables.inc"

// The row that holds `c`, or null.
template <class Range, size_t n>
const Range* find_range(const Range (&table)[n], char32_t c) {
  auto* row = std::upper_bound(std::begin(table), std::end(table), c,
                               [](char32_t value, const Range& r) { return value < r.first; });
  if (row == std::begin(table)) return nullptr;
  --row;
  return c <= row->last ? row : nullptr;
}

}  // namespace

bool is_whitespace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}
bool is_numeric(char32_t c) { return c < 0x80 ? c >= '0' && c <= '9' : find_range(kNumeric, c) != nullptr; }
bool is_punctuation(char32_t c) { return find_range(kPunctuation, c) != nullptr; }
bool is_word_character(char32_t c) { return find_range(kWord, c) != nullptr; }
bool is_combining_mark(char32_t c) { return c >= 0x300 && find_range(kCombiningMark, c) != nullptr; }
bool is_nonspacing_mark(char32_t c) { return c >= 0x300 && find_range(kNonspacingMark, c) != nullptr; }
bool is_bert_dropped(char32_t c) { return find_range(kBertDropped, c) != nullptr; }

bool is_cjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

void append_lower(std::string* out, char32_t c) {
  if (c < 0x80) return out->push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  if (c == 0x130) return void(*out += "i\xCC\x87");
  const LowerRange* row = find_range(kLower, c);
  if (row && (c - row->first) % static_cast<uint32_t>(row->stride) == 0)
    c = static_cast<char32_t>(static_cast<int32_t>(c) + row->delta);
  utf8_append(out, c);
}

std::string unicode_normalize(std::string_view text, NormalForm form) {
  if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
    return std::string(text);
  bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  bool compat = form == NormalForm::nfkc || form == NormalForm::nfkd;
  int options = UTF8PROC_STABLE | (compose ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE);
  if (compat) options |= UTF8PROC_COMPAT;

  std::string out;
  out.reserve(text.size());
  size_t begin = 0;
  auto flush = [&](size_t end) {
    if (begin == end) return;
    utf8proc_uint8_t* result = nullptr;
    utf8proc_ssize_t n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data() + begin),
                                      static_cast<utf8proc_ssize_t>(end - begin), &result,
                                      static_cast<utf8proc_option_t>(options));
    std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(result, &std::free);
    if (n < 0) throw error(ErrorKind::Tokenizer, "Unicode normalization: {}", utf8proc_errmsg(n));
    out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(n));
  };
  // Frozen code points are starters that neither decompose nor compose: the text falls into parts there.
  for (size_t i = 0; i < text.size();) {
    size_t at = i;
    char32_t c = utf8_next(text, &i);
    if (c < 0x300 || !find_range(kFrozen, c)) continue;
    flush(at);
    out.append(text.substr(at, i - at));
    begin = i;
  }
  flush(text.size());
  return out;
}

size_t grapheme_length(std::string_view text) {
  size_t pos = 0;
  char32_t previous = utf8_next(text, &pos);
  utf8proc_int32_t state = 0;
  while (pos < text.size()) {
    size_t next = pos;
    char32_t c = utf8_next(text, &next);
    if (previous < 0x80 && c < 0x80 && !(previous == '\r' && c == '\n')) break;
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                         static_cast<utf8proc_int32_t>(c), &state))
      break;
    previous = c;
    pos = next;
  }
  return pos;
}

bool unicode_shadow(std::string_view text, std::string* copy) {
  constexpr uint32_t first = kShadow[0].first;
  static_assert(first >= 0x800, "only three-byte characters and longer are looked at");
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    if (static_cast<unsigned char>(text[i]) < 0xE0) {
      ++i;
      continue;
    }
    size_t at = i;
    char32_t c = utf8_next(text, &i);
    const ShadowRange* row = find_range(kShadow, c);
    if (!row) continue;
    if (!found) copy->assign(text);
    found = true;
    std::string proxy;
    utf8_append(&proxy, row->proxy);
    copy->replace(at, proxy.size(), proxy);
  }
  return found;
}

}  // namespace cyb
