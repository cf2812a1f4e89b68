// SPDX-License-Identifier: Apache-2.0
#include "text/vocab_lines.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/byte_scan.h"
#include "base/error.h"
#include "text/tokenizer_spec.h"
#include "text/utf8.h"

namespace cyb::vocab {

bool Lines::next() {
  while (next_ < last_) {
    p_ = next_;
    auto* newline = static_cast<const char*>(std::memchr(p_, '\n', static_cast<size_t>(last_ - p_)));
    end_ = newline ? newline : last_;
    next_ = newline ? newline + 1 : last_;
    if (p_ < end_ && end_[-1] == '\r') --end_;
    if (p_ != end_ && *p_ != '#') return true;
  }
  return false;
}

int64_t Lines::line() const { return 1 + std::count(text_.data(), p_, '\n'); }

void Lines::fail(std::string_view expected) const {
  std::string found(p_, std::min<size_t>(static_cast<size_t>(end_ - p_), 40));
  throw error(ErrorKind::InvalidFile, "vocab line {}: expected {}, found '{}'", line(), expected, found)
      .advise("{}", kAdvice);
}

void Lines::expect(char c) {
  if (!take(c)) fail(fmt::format("'{}'", c));
}

void Lines::end_of_line() {
  spaces();
  if (p_ != end_ && *p_ != '#') fail("nothing more");
}

std::string_view Lines::key() {
  spaces();
  const char* begin = p_;
  while (p_ < end_ && ((*p_ >= 'a' && *p_ <= 'z') || (*p_ >= 'A' && *p_ <= 'Z') ||
                       (*p_ >= '0' && *p_ <= '9') || *p_ == '_' || *p_ == '-'))
    ++p_;
  if (p_ == begin) fail("a key");
  return {begin, static_cast<size_t>(p_ - begin)};
}

bool Lines::boolean() {
  spaces();
  const bool yes = rest().starts_with("true");
  if (!yes && !rest().starts_with("false")) fail("true or false");
  p_ += yes ? 4 : 5;
  return yes;
}

uint32_t Lines::number() {
  spaces();
  uint32_t n = 0;
  const char* begin = p_;
  while (p_ < end_ && *p_ >= '0' && *p_ <= '9') {
    n = n * 10 + static_cast<uint32_t>(*p_++ - '0');
    if (n >= kMaxTokens) fail(fmt::format("a number below {}", kMaxTokens));
  }
  if (p_ == begin) fail("a number");
  return n;
}

std::string_view Lines::string() {
  expect('"');
  const char* begin = p_;
  while (p_ < end_ && *p_ != '"' && *p_ != '\\') ++p_;
  if (p_ < end_ && *p_ == '"') {
    ++p_;
    return {begin, static_cast<size_t>(p_ - 1 - begin)};
  }
  scratch_.assign(begin, p_);
  while (p_ < end_ && *p_ != '"') {
    if (*p_ != '\\') {
      scratch_.push_back(*p_++);
      continue;
    }
    if (++p_ == end_) break;
    switch (char c = *p_++) {
      case 'n':
        scratch_ += '\n';
        break;
      case 't':
        scratch_ += '\t';
        break;
      case 'r':
        scratch_ += '\r';
        break;
      case 'b':
        scratch_ += '\b';
        break;
      case 'f':
        scratch_ += '\f';
        break;
      case '"':
      case '\\':
        scratch_ += c;
        break;
      case 'u':
      case 'U': {
        ptrdiff_t digits = c == 'u' ? 4 : 8;
        uint32_t code = 0;
        if (end_ - p_ < digits) fail("hexadecimal digits");
        auto [after, result] = std::from_chars(p_, p_ + digits, code, 16);
        if (result != std::errc() || after != p_ + digits || code > 0x10FFFF ||
            (code >= 0xD800 && code < 0xE000))
          fail("a code point");
        p_ = after;
        utf8_append(&scratch_, code);
        break;
      }
      default:
        --p_;
        fail("a known escape");
    }
  }
  expect('"');
  return scratch_;
}

const char* Lines::plain_number(uint32_t* n) const {
  uint32_t value = 0;
  const char* p = next_;
  // Seven digits are enough for kMaxTokens, and cannot overflow.
  const char* most = p + std::min<ptrdiff_t>(last_ - p, 7);
  while (p < most && *p >= '0' && *p <= '9') value = value * 10 + static_cast<uint32_t>(*p++ - '0');
  *n = value;
  return p == next_ || value >= kMaxTokens ? nullptr : p;
}

// From the first byte behind the opening quote to behind the closing one.
const char* Lines::plain_string(const char* p, std::string_view* text) const {
  const char* end = find_any(p, last_, '"', '\\', '\n');
  if (end == last_ || *end != '"') return nullptr;
  *text = {p, static_cast<size_t>(end - p)};
  return end + 1;
}

const char* Lines::plain_entry(uint32_t* n, std::string_view* text) const {
  const char* p = plain_number(n);
  if (!p || last_ - p < 4 || std::memcmp(p, " = \"", 4) != 0) return nullptr;
  p = plain_string(p + 4, text);
  return p && p < last_ && *p == '\n' ? p + 1 : nullptr;
}

const char* Lines::plain_pair(uint32_t* n, std::string_view* left, std::string_view* right) const {
  const char* p = plain_number(n);
  if (!p || last_ - p < 5 || std::memcmp(p, " = [\"", 5) != 0) return nullptr;
  p = plain_string(p + 5, left);
  if (!p || last_ - p < 3 || std::memcmp(p, ", \"", 3) != 0) return nullptr;
  p = plain_string(p + 3, right);
  return p && last_ - p >= 2 && std::memcmp(p, "]\n", 2) == 0 ? p + 2 : nullptr;
}

}  // namespace cyb::vocab
