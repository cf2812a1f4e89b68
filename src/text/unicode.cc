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

void strip_left(std::string_view text, size_t* begin, size_t end) {
  for (size_t at = *begin; at < end && is_whitespace(utf8_next(text, &at));) *begin = at;
}

void strip_right(std::string_view text, size_t begin, size_t* end) {
  while (*end > begin) {
    const size_t last = utf8_previous(text, *end);
    size_t at = last;
    if (!is_whitespace(utf8_next(text, &at))) break;
    *end = last;
  }
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

namespace {

// What two characters compose to, or 0.
char32_t composed(char32_t first, char32_t second) {
  utf8proc_int32_t pair[] = {static_cast<utf8proc_int32_t>(first), static_cast<utf8proc_int32_t>(second)};
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  return utf8proc_normalize_utf32(pair, 2, options) == 1 ? static_cast<char32_t>(pair[0]) : 0;
}

int combining_class(char32_t c) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class;
}

// Joins the characters of one stretch, which begins with a starter, as composition does it.
void compose(std::vector<Change>* stretch) {
  std::vector<Change>& s = *stretch;
  size_t kept = 1;
  int last = -1;  // class of the last character that stays
  for (size_t i = 1; i < s.size(); ++i) {
    const int here = combining_class(s[i].character);
    char32_t both = 0;
    if (last < here) both = composed(s[0].character, s[i].character);
    if (both != 0) {
      s[0] = {both, s[0].change + s[i].change - 1};
    } else {
      last = here;
      s[kept++] = s[i];
    }
  }
  s.resize(kept);
}

}  // namespace

std::vector<Change> unicode_changes(std::string_view text, NormalForm form) {
  const bool compat = form == NormalForm::nfkc || form == NormalForm::nfkd;
  const int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0);
  std::vector<Change> parts;
  std::vector<utf8proc_int32_t> whole(32);
  for (size_t i = 0; i < text.size();) {
    const char32_t c = utf8_next(text, &i);
    if (c < 0x80 || find_range(kFrozen, c)) {
      parts.push_back({c, 0});
      continue;
    }
    int boundary = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), whole.data(),
                                           static_cast<utf8proc_ssize_t>(whole.size()),
                                           static_cast<utf8proc_option_t>(options), &boundary);
    if (n < 0 || static_cast<size_t>(n) > whole.size())
      throw error(ErrorKind::Tokenizer, "Unicode normalization of U+{:04X}", static_cast<uint32_t>(c));
    for (size_t k = 0; k < static_cast<size_t>(n); ++k)
      parts.push_back({static_cast<char32_t>(whole[k]), k > 0});
  }
  const bool joins = form == NormalForm::nfc || form == NormalForm::nfkc;
  std::vector<Change> out, stretch;
  const auto starts = [&](size_t i) { return i == parts.size() || combining_class(parts[i].character) == 0; };
  for (size_t i = 0; i < parts.size();) {
    // A starter, and the marks behind it in the order of their classes.
    size_t end = i + 1;
    while (!starts(end)) ++end;
    const size_t marks = starts(i) ? i + 1 : i;
    std::stable_sort(parts.begin() + static_cast<std::ptrdiff_t>(marks),
                     parts.begin() + static_cast<std::ptrdiff_t>(end), [](const Change& a, const Change& b) {
                       return combining_class(a.character) < combining_class(b.character);
                     });
    const auto flush = [&] {
      out.insert(out.end(), stretch.begin(), stretch.end());
      stretch.clear();
    };
    // Two starters may compose as well (Hangul).
    char32_t both = 0;
    if (joins && stretch.size() == 1 && marks > i && starts(i) &&
        !find_range(kFrozen, stretch[0].character) && !find_range(kFrozen, parts[i].character))
      both = composed(stretch[0].character, parts[i].character);
    if (both != 0) {
      stretch[0] = {both, stretch[0].change + parts[i].change - 1};
    } else {
      flush();
      stretch.push_back(parts[i]);
    }
    stretch.insert(stretch.end(), parts.begin() + static_cast<std::ptrdiff_t>(i + 1),
                   parts.begin() + static_cast<std::ptrdiff_t>(end));
    if (joins && combining_class(stretch[0].character) == 0) compose(&stretch);
    i = end;
    if (i == parts.size()) flush();
  }
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
