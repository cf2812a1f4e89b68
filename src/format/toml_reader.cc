// SPDX-License-Identifier: Apache-2.0
#include "format/toml_reader.h"

#include <cstring>

namespace cyb {
namespace {

constexpr int kMaxNesting = 64;
constexpr size_t kMaxPath = 64;

bool is_bare(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

void append_utf8(std::string* out, uint32_t c) {
  if (c < 0x80) {
    out->push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out->push_back(static_cast<char>(0xc0 | (c >> 6)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else if (c < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | (c >> 12)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  } else {
    out->push_back(static_cast<char>(0xf0 | (c >> 18)));
    out->push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3f)));
    out->push_back(static_cast<char>(0x80 | (c & 0x3f)));
  }
}

}  // namespace

Error TomlReader::fail(std::string_view what) const {
  return error(ErrorKind::InvalidConfig, "{}, line {}: {}", where_, line_, what);
}

void TomlReader::skip_space() {
  while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\t')) pos_++;
}

void TomlReader::skip_comment() {
  if (peek() != '#') return;
  const size_t end = text_.find('\n', pos_);
  pos_ = end == std::string_view::npos ? text_.size() : end;
}

// Spaces, comments and line ends, where a value may be spread over lines or between statements.
void TomlReader::skip_lines() {
  for (;;) {
    skip_space();
    skip_comment();
    if (peek() == '\r' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '\n') pos_++;
    if (at_end() || text_[pos_] != '\n') return;
    pos_++;
    line_++;
  }
}

void TomlReader::end_of_line() {
  skip_space();
  skip_comment();
  if (peek() == '\r' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '\n') pos_++;
  if (at_end()) return;
  if (text_[pos_] != '\n') throw fail("expected the end of the line after the value");
}

void TomlReader::read_key(std::vector<std::string>* out) {
  out->clear();
  for (;;) {
    skip_space();
    std::string part;
    if (peek() == '"') {
      read_basic(&part);
    } else if (peek() == '\'') {
      read_literal(&part);
    } else {
      const size_t begin = pos_;
      while (pos_ < text_.size() && is_bare(text_[pos_])) pos_++;
      if (pos_ == begin) throw fail("expected a key: letters, digits, '_', '-', or text in quotes");
      part.assign(text_.substr(begin, pos_ - begin));
    }
    out->push_back(std::move(part));
    if (out->size() > kMaxPath) throw fail("the key has too many parts");
    skip_space();
    if (peek() != '.') return;
    pos_++;
  }
}

bool TomlReader::next() {
  if (value_pending_) skip_value();
  if (!path_.empty()) end_of_line();
  skip_lines();
  if (at_end()) return false;
  header_ = array_header_ = false;
  if (text_[pos_] == '[') {
    pos_++;
    header_ = true;
    if (peek() == '[') {
      array_header_ = true;
      pos_++;
    }
    read_key(&path_);
    if (peek() != ']') throw fail("expected ']' after the table's name");
    pos_++;
    if (array_header_) {
      if (peek() != ']') throw fail("expected ']]' after the table's name");
      pos_++;
    }
    return true;
  }
  read_key(&path_);
  if (peek() != '=') throw fail(fmt::format("expected '=' after the key '{}'", path_.back()));
  pos_++;
  skip_space();
  value_pending_ = true;
  return true;
}

TomlReader::Kind TomlReader::kind() {
  const char c = peek();
  if (c == '"' || c == '\'') return Kind::string;
  if (c == '[') return Kind::array;
  if (c == '{') return Kind::table;
  if (c == 't' || c == 'f') return Kind::boolean;
  if ((c >= '0' && c <= '9') || c == '+' || c == '-') return Kind::integer;
  if (c == 'i' || c == 'n') throw fail("floats are not allowed here; write the number as text in quotes");
  throw fail("expected a value: an integer, true, false, text in quotes, a list or a table");
}

void TomlReader::read_string(std::string* out) {
  if (kind() != Kind::string) throw fail("expected text in quotes");
  out->clear();
  if (nesting_ == 0) value_pending_ = false;
  if (text_.substr(pos_, 3) == "\"\"\"") return read_multi_line(out, '"');
  if (text_.substr(pos_, 3) == "'''") return read_multi_line(out, '\'');
  if (peek() == '"')
    read_basic(out);
  else
    read_literal(out);
}

void TomlReader::read_escape(std::string* out) {
  pos_++;
  const char c = peek();
  pos_++;
  switch (c) {
    case 'b':
      out->push_back('\b');
      return;
    case 't':
      out->push_back('\t');
      return;
    case 'n':
      out->push_back('\n');
      return;
    case 'f':
      out->push_back('\f');
      return;
    case 'r':
      out->push_back('\r');
      return;
    case '"':
      out->push_back('"');
      return;
    case '\\':
      out->push_back('\\');
      return;
    case 'u':
    case 'U': {
      const int digits = c == 'u' ? 4 : 8;
      uint32_t code = 0;
      for (int i = 0; i < digits; i++, pos_++) {
        const char d = peek();
        const int v = d >= '0' && d <= '9'   ? d - '0'
                      : d >= 'a' && d <= 'f' ? d - 'a' + 10
                      : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                             : -1;
        if (v < 0) throw fail("expected hexadecimal digits after \\u");
        code = code << 4 | static_cast<uint32_t>(v);
      }
      if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) throw fail("\\u names no Unicode character");
      append_utf8(out, code);
      return;
    }
    default:
      throw fail("unknown escape after '\\' in text");
  }
}

void TomlReader::read_basic(std::string* out) {
  pos_++;
  for (;;) {
    size_t end = pos_;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\\' &&
           static_cast<uint8_t>(text_[end]) >= 0x20)
      end++;
    out->append(text_.data() + pos_, end - pos_);
    pos_ = end;
    const char c = peek();
    if (c == '\\') {
      read_escape(out);
    } else if (c == '"') {
      pos_++;
      return;
    } else if (c == '\t') {
      out->push_back(c);
      pos_++;
    } else {
      throw fail(at_end() || c == '\n' ? "the text has no closing quote" : "control character in text");
    }
  }
}

void TomlReader::read_literal(std::string* out) {
  const size_t end = text_.find_first_of("'\n", pos_ + 1);
  if (end == std::string_view::npos || text_[end] != '\'') throw fail("the text has no closing quote");
  out->assign(text_.substr(pos_ + 1, end - pos_ - 1));
  pos_ = end + 1;
}

void TomlReader::read_multi_line(std::string* out, char quote) {
  const int start = line_;
  pos_ += 3;
  if (peek() == '\r' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '\n') pos_++;
  if (peek() == '\n') {
    pos_++;
    line_++;
  }
  while (!at_end()) {
    const char c = text_[pos_];
    if (c == quote) {
      size_t run = 0;
      while (pos_ + run < text_.size() && text_[pos_ + run] == quote && run < 5) run++;
      if (run >= 3) {
        out->append(run - 3, quote);
        pos_ += run;
        return;
      }
      out->append(run, quote);
      pos_ += run;
    } else if (c == '\\' && quote == '"') {
      size_t p = pos_ + 1;
      while (p < text_.size() && (text_[p] == ' ' || text_[p] == '\t' || text_[p] == '\r')) p++;
      if (p < text_.size() && text_[p] == '\n') {  // a backslash at the line's end joins lines
        pos_ = p;
        while (!at_end() && std::strchr(" \t\r\n", text_[pos_])) {
          if (text_[pos_] == '\n') line_++;
          pos_++;
        }
      } else {
        read_escape(out);
      }
    } else {
      if (c == '\n') line_++;
      out->push_back(c);
      pos_++;
    }
  }
  line_ = start;
  throw fail("the text has no closing quotes");
}

int64_t TomlReader::read_integer() {
  if (kind() != Kind::integer) throw fail("expected an integer");
  if (nesting_ == 0) value_pending_ = false;
  bool negative = false;
  const bool sign = peek() == '+' || peek() == '-';
  if (sign) negative = text_[pos_++] == '-';
  uint32_t base = 10;
  if (!sign && peek() == '0' && pos_ + 1 < text_.size()) {
    const char c = text_[pos_ + 1];
    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (base != 10) pos_ += 2;
  }
  uint64_t value = 0;
  size_t digits = 0;
  bool digit_before = false, leading_zero = false;
  for (; pos_ < text_.size(); pos_++) {
    const char c = text_[pos_];
    if (c == '_') {
      if (!digit_before) throw fail("'_' must stand between digits");
      digit_before = false;
      continue;
    }
    uint32_t d = 99;
    if (c >= '0' && c <= '9') d = static_cast<uint32_t>(c - '0');
    if (base == 16 && c >= 'a' && c <= 'f') d = static_cast<uint32_t>(c - 'a' + 10);
    if (base == 16 && c >= 'A' && c <= 'F') d = static_cast<uint32_t>(c - 'A' + 10);
    if (d >= base) break;
    if (digits == 0 && d == 0) leading_zero = true;
    if (__builtin_mul_overflow(value, uint64_t{base}, &value) ||
        __builtin_add_overflow(value, uint64_t{d}, &value))
      throw fail("the integer does not fit 64 bits");
    digits++;
    digit_before = true;
  }
  const char c = peek();
  if (digits > 0 && (c == '.' || c == 'e' || c == 'E' || c == ':' || (c == '-' && digits == 4)))
    throw fail("floats and dates are not allowed here; write the value as text in quotes");
  if (digits == 0 || !digit_before) throw fail("expected digits");
  if (base == 10 && leading_zero && digits > 1) throw fail("an integer must not begin with 0");
  const uint64_t limit = uint64_t{1} << 63;
  if (value > limit || (value == limit && !negative)) throw fail("the integer does not fit 64 bits");
  return static_cast<int64_t>(negative ? 0 - value : value);
}

bool TomlReader::read_boolean() {
  if (kind() != Kind::boolean) throw fail("expected true or false");
  if (nesting_ == 0) value_pending_ = false;
  for (const std::string_view word : {std::string_view("true"), std::string_view("false")}) {
    if (text_.substr(pos_, word.size()) != word) continue;
    pos_ += word.size();
    if (is_bare(peek())) break;
    return word == "true";
  }
  throw fail("expected true or false");
}

void TomlReader::begin_array() {
  if (kind() != Kind::array) throw fail("expected a list");
  if (++nesting_ > kMaxNesting) throw fail("values are nested too deep");
  pos_++;
  first_element_ = true;
}

bool TomlReader::next_element() {
  skip_lines();
  if (at_end()) throw fail("the list has no closing ']'");
  if (!first_element_ && peek() == ',') {
    pos_++;
    skip_lines();
  } else if (!first_element_ && peek() != ']') {
    throw fail("expected ',' or ']' in the list");
  }
  if (peek() == ']') {
    pos_++;
    if (--nesting_ == 0) value_pending_ = false;
    first_element_ = false;
    return false;
  }
  if (at_end()) throw fail("the list has no closing ']'");
  first_element_ = false;
  return true;
}

void TomlReader::begin_table() {
  if (kind() != Kind::table) throw fail("expected a table in braces");
  if (++nesting_ > kMaxNesting) throw fail("values are nested too deep");
  pos_++;
  first_element_ = true;
}

bool TomlReader::next_field() {
  skip_space();
  if (peek() == '}') {
    pos_++;
    if (--nesting_ == 0) value_pending_ = false;
    first_element_ = false;
    return false;
  }
  if (!first_element_) {
    if (peek() != ',') throw fail("expected ',' or '}' in the table");
    pos_++;
  }
  read_key(&field_);
  if (peek() != '=') throw fail(fmt::format("expected '=' after the key '{}'", field_.back()));
  pos_++;
  skip_space();
  first_element_ = false;
  return true;
}

void TomlReader::skip_value(int depth) {
  switch (kind()) {
    case Kind::string: {
      std::string unused;
      read_string(&unused);
      break;
    }
    case Kind::integer:
      read_integer();
      break;
    case Kind::boolean:
      read_boolean();
      break;
    case Kind::array:
      for (begin_array(); next_element();) skip_value(depth + 1);
      break;
    case Kind::table:
      for (begin_table(); next_field();) skip_value(depth + 1);
      break;
  }
}

void append_toml_string(std::string* out, std::string_view text) {
  out->push_back('"');
  size_t begin = 0;
  for (size_t i = 0; i < text.size(); i++) {
    const uint8_t c = static_cast<uint8_t>(text[i]);
    if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f) continue;
    out->append(text.data() + begin, i - begin);
    begin = i + 1;
    switch (c) {
      case '"':
        out->append("\\\"");
        break;
      case '\\':
        out->append("\\\\");
        break;
      case '\n':
        out->append("\\n");
        break;
      case '\t':
        out->append("\\t");
        break;
      case '\r':
        out->append("\\r");
        break;
      default: {
        constexpr char kHex[] = "0123456789abcdef";
        out->append("\\u00");
        out->push_back(kHex[c >> 4]);
        out->push_back(kHex[c & 15]);
      }
    }
  }
  out->append(text.data() + begin, text.size() - begin);
  out->push_back('"');
}

void append_toml_key(std::string* out, std::string_view key) {
  bool bare = !key.empty();
  for (const char c : key) bare = bare && is_bare(c);
  if (bare)
    out->append(key);
  else
    append_toml_string(out, key);
}

}  // namespace cyb
