// SPDX-License-Identifier: Apache-2.0
// Template text to tokens.
#include "text/template/lexer.h"

#include <algorithm>
#include <cmath>

#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

struct Operator {
  std::string_view text;
  Tok kind;
};
// Longer ones first.
constexpr Operator kOperators[] = {
    {"//", Tok::FloorDiv}, {"**", Tok::Pow},   {"==", Tok::Eq},      {"!=", Tok::Ne},      {">=", Tok::GtEq},
    {"<=", Tok::LtEq},     {"+", Tok::Add},    {"-", Tok::Sub},      {"/", Tok::Div},      {"*", Tok::Mul},
    {"%", Tok::Mod},       {"~", Tok::Tilde},  {"[", Tok::LBracket}, {"]", Tok::RBracket}, {"(", Tok::LParen},
    {")", Tok::RParen},    {"{", Tok::LBrace}, {"}", Tok::RBrace},   {">", Tok::Gt},       {"<", Tok::Lt},
    {"=", Tok::Assign},    {".", Tok::Dot},    {":", Tok::Colon},    {"|", Tok::Pipe},     {",", Tok::Comma},
    {";", Tok::Semicolon},
};

bool is_digit_char(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  LexResult run() {
    try {
      while (at_ < source_.size()) root();
      push(Tok::Eof, source_.size());
    } catch (Failure& failure) {
      result_.failure = std::make_unique<Failure>(std::move(failure));
      result_.failure_at = std::min(at_, source_.size());
    }
    return std::move(result_);
  }

 private:
  Token& push(Tok kind, size_t at) {
    Token token;
    token.kind = kind;
    token.at = at;
    result_.tokens.push_back(std::move(token));
    return result_.tokens.back();
  }

  bool has(std::string_view what, size_t at) const {
    return source_.substr(std::min(at, source_.size())).starts_with(what);
  }

  size_t skip_space(size_t at) const {
    while (at < source_.size()) {
      size_t next = at;
      if (!is_space(next_code_point(source_, next))) break;
      at = next;
    }
    return at;
  }

  // Moves behind a match; jinja2 looks at whether it ended a line.
  void move_to(size_t at) {
    if (at > at_) line_starting_ = source_[at - 1] == '\n';
    at_ = at;
  }

  void data(std::string_view text) {
    if (!text.empty()) push(Tok::Data, static_cast<size_t>(text.data() - source_.data())).text = text;
  }

  // Template text before a tag, as its white space control leaves it.
  std::string_view before_tag(std::string_view text, char sign, bool variable) const {
    if (sign == '-') return strip_right(text);
    if (sign == '+' || variable) return text;
    size_t line = text.rfind('\n') + 1;
    if (line == 0 && !line_starting_) return text;
    return strip_left(text.substr(line)).empty() ? text.substr(0, line) : text;
  }

  char sign_at(size_t at) const {
    char c = at < source_.size() ? source_[at] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  // `{% raw %}` at this byte: the end of the tag, or 0.
  size_t raw_begin(size_t at) const {
    size_t i = at + 2;
    if (sign_at(i)) ++i;
    i = skip_space(i);
    if (!has("raw", i)) return 0;
    i = skip_space(i + 3);
    if (has("-%}", i)) return skip_space(i + 3);
    return has("%}", i) ? i + 2 : 0;
  }

  void root() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == source_.npos || tag + 1 >= source_.size()) {
        data(source_.substr(at_));
        at_ = source_.size();
        return;
      }
      char next = source_[tag + 1];
      if (next == '%' || next == '{' || next == '#') break;
    }
    char kind = source_[tag + 1];
    char sign = sign_at(tag + 2);
    std::string_view text = source_.substr(at_, tag - at_);
    data(before_tag(text, sign, kind == '{'));
    if (kind == '%') {
      if (size_t end = raw_begin(tag)) {
        move_to(end);
        return raw();
      }
    }
    line_starting_ = false;
    at_ = tag + (sign ? 3 : 2);
    if (kind == '#') return comment();
    push(kind == '{' ? Tok::VariableBegin : Tok::BlockBegin, tag);
    tag_body(kind == '{');
  }

  // The end of a tag that closes with `close` at this byte: behind it, or 0. A line end after it is trimmed.
  size_t block_close(std::string_view close, size_t at) const {
    if (at < source_.size() && source_[at] == '+' && has(close, at + 1)) return at + 1 + close.size();
    if (at < source_.size() && source_[at] == '-' && has(close, at + 1))
      return skip_space(at + 1 + close.size());
    if (!has(close, at)) return 0;
    at += close.size();
    return has("\n", at) ? at + 1 : at;
  }

  void comment() {
    if (at_ >= source_.size()) return;  // jinja2 lets a comment that starts at the very end pass
    size_t end = source_.find("#}", at_);
    if (end == source_.npos) fail(kSyntaxError, "Missing end of comment tag");
    if (end > at_ && sign_at(end - 1)) --end;
    move_to(block_close("#}", end));
  }

  void raw() {
    if (at_ >= source_.size()) return;
    for (size_t tag = at_;; ++tag) {
      tag = source_.find("{%", tag);
      if (tag == source_.npos) fail(kSyntaxError, "Missing end of raw directive");
      char sign = sign_at(tag + 2);
      size_t i = skip_space(tag + (sign ? 3 : 2));
      if (!has("endraw", i)) continue;
      size_t end = block_close("%}", skip_space(i + 6));
      if (end == 0) continue;
      data(before_tag(source_.substr(at_, tag - at_), sign, false));
      move_to(end);
      return;
    }
  }

  void tag_body(bool variable) {
    std::vector<char> open;
    while (at_ < source_.size()) {
      if (open.empty()) {
        size_t end = 0;
        if (!variable) {
          end = block_close("%}", at_);
        } else if (has("-}}", at_)) {
          end = skip_space(at_ + 3);
        } else if (has("}}", at_)) {
          end = at_ + 2;
        }
        if (end) {
          push(variable ? Tok::VariableEnd : Tok::BlockEnd, at_);
          return move_to(end);
        }
      }
      size_t space = skip_space(at_);
      if (space > at_) {
        at_ = space;
        continue;
      }
      token(open);
    }
  }

  // Digits with single underscores between them: `(\d+_)*\d+`.
  size_t digits(size_t at) const {
    size_t i = at;
    while (i < source_.size() && is_digit_char(source_[i])) ++i;
    while (i > at && i + 1 < source_.size() && source_[i] == '_' && is_digit_char(source_[i + 1])) {
      ++i;
      while (i < source_.size() && is_digit_char(source_[i])) ++i;
    }
    return i;
  }

  size_t float_end(size_t at) const {
    if (at > 0 && source_[at - 1] == '.') return 0;
    size_t whole = digits(at);
    if (whole == at) return 0;
    size_t fraction = 0;
    if (whole < source_.size() && source_[whole] == '.') {
      size_t end = digits(whole + 1);
      if (end > whole + 1) fraction = end;
    }
    size_t e = fraction ? fraction : whole;
    if (e < source_.size() && (source_[e] == 'e' || source_[e] == 'E')) {
      size_t i = e + 1;
      if (sign_at(i)) ++i;
      size_t end = digits(i);
      if (end > i) return end;
    }
    return fraction;
  }

  size_t integer_end(size_t at) const {
    auto run = [&](size_t i, auto is) {
      size_t start = i;
      while (i < source_.size()) {
        size_t digit = source_[i] == '_' ? i + 1 : i;
        if (digit >= source_.size() || !is(source_[digit])) break;
        i = digit + 1;
      }
      return i > start ? i : 0;
    };
    char first = source_[at];
    char letter = at + 1 < source_.size() ? static_cast<char>(source_[at + 1] | 0x20) : '\0';
    if (first == '0') {
      size_t end = 0;
      if (letter == 'b') end = run(at + 2, [](char c) { return c == '0' || c == '1'; });
      if (letter == 'o') end = run(at + 2, [](char c) { return c >= '0' && c <= '7'; });
      if (letter == 'x')
        end =
            run(at + 2, [](char c) { return is_digit_char(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f'); });
      if (end) return end;
      end = run(at + 1, [](char c) { return c == '0'; });
      return end ? end : at + 1;
    }
    size_t end = run(at + 1, is_digit_char);
    return end ? end : at + 1;
  }

  static std::string without_underscores(std::string_view text) {
    std::string out(text);
    out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
    return out;
  }

  void token(std::vector<char>& open) {
    size_t start = at_;
    char c = source_[at_];
    if (is_digit_char(c)) return number();
    size_t peek = at_;
    char32_t first = next_code_point(source_, peek);
    if (first == '_' || is_alnum(first)) {
      bool identifier = is_identifier_start(first);
      while (peek < source_.size()) {
        size_t next = peek;
        char32_t part = next_code_point(source_, next);
        if (part != '_' && !is_alnum(part) && !is_identifier_part(part)) break;
        identifier = identifier && is_identifier_part(part);
        peek = next;
      }
      if (!identifier) fail(kSyntaxError, "Invalid character in identifier");
      at_ = peek;
      push(Tok::Name, start).text = source_.substr(start, peek - start);
      return;
    }
    if (c == '\'' || c == '"') {
      size_t i = at_ + 1;
      while (i < source_.size() && source_[i] != c) i += source_[i] == '\\' ? 2 : 1;
      if (i < source_.size()) {
        std::string text = unescape(source_.substr(start + 1, i - start - 1));
        at_ = i + 1;
        push(Tok::String, start).text = std::move(text);
        return;
      }
    }
    for (const Operator& op : kOperators) {
      if (!has(op.text, at_)) continue;
      balance(c, open);
      at_ += op.text.size();
      push(op.kind, start);
      return;
    }
    fail(kSyntaxError, "unexpected char {} at {}", quoted(utf8(first)),
         count_code_points(source_.substr(0, at_)));
  }

  void number() {
    size_t start = at_;
    if (size_t end = float_end(start)) {
      double value = parse_float(without_underscores(source_.substr(start, end - start))).value_or(HUGE_VAL);
      at_ = end;
      push(Tok::Float, start).real = value;
      return;
    }
    size_t end = integer_end(start);
    std::string text = without_underscores(source_.substr(start, end - start));
    auto value = parse_int(text, 0);
    if (!value) fail(kSyntaxError, "an integer of {} digits", text.size());
    at_ = end;
    push(Tok::Integer, start).integer = *value;
  }

  static void balance(char c, std::vector<char>& open) {
    if (c == '(' || c == '[' || c == '{') {
      open.push_back(c == '(' ? ')' : c == '[' ? ']' : '}');
    } else if (c == ')' || c == ']' || c == '}') {
      if (open.empty()) fail(kSyntaxError, "unexpected '{}'", c);
      char expected = open.back();
      open.pop_back();
      if (expected != c) fail(kSyntaxError, "unexpected '{}', expected '{}'", c, expected);
    }
  }

  // Python's escapes in string literals.
  static std::string unescape(std::string_view text) {
    std::string out;
    for (size_t i = 0; i < text.size();) {
      if (text[i] != '\\' || i + 1 >= text.size()) {
        out += text[i++];
        continue;
      }
      char c = text[i + 1];
      i += 2;
      switch (c) {
        case '\n':
          break;
        case '\\':
        case '\'':
        case '"':
          out += c;
          break;
        case 'a':
          out += '\a';
          break;
        case 'b':
          out += '\b';
          break;
        case 'f':
          out += '\f';
          break;
        case 'n':
          out += '\n';
          break;
        case 'r':
          out += '\r';
          break;
        case 't':
          out += '\t';
          break;
        case 'v':
          out += '\v';
          break;
        case 'x':
          append_code(out, hex(text, i, 2, "truncated \\xXX escape"));
          break;
        case 'u':
          append_code(out, hex(text, i, 4, "truncated \\uXXXX escape"));
          break;
        case 'U':
          append_code(out, hex(text, i, 8, "truncated \\UXXXXXXXX escape"));
          break;
        case 'N':
          fail(kUnsupported, "a character by its name (\\N{{…}}) in a string");
        default:
          if (c >= '0' && c <= '7') {
            char32_t code = static_cast<char32_t>(c - '0');
            for (int n = 1; n < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++n)
              code = code * 8 + static_cast<char32_t>(text[i++] - '0');
            append_utf8(out, code);
          } else {
            // jinja2 writes other characters as ASCII escapes first, and the backslash eats that of the
            // escape.
            size_t end = i - 1;
            next_code_point(text, end);
            std::string escaped = ascii_escaped(text.substr(i - 1, end - (i - 1)));
            out += escaped[0] == '\\' ? escaped : "\\" + escaped;
            i = end;
          }
      }
    }
    return out;
  }

  static char32_t hex(std::string_view text, size_t& i, size_t count, const char* error) {
    char32_t code = 0;
    for (size_t n = 0; n < count; ++n, ++i) {
      char c = i < text.size() ? text[i] : '\0';
      char low = static_cast<char>(c | 0x20);
      char32_t digit;
      if (is_digit_char(c)) {
        digit = static_cast<char32_t>(c - '0');
      } else if (low >= 'a' && low <= 'f') {
        digit = static_cast<char32_t>(low - 'a' + 10);
      } else {
        throw Failure{kSyntaxError, error};
      }
      code = code << 4 | digit;
    }
    return code;
  }

  static void append_code(std::string& out, char32_t code) {
    if (code > 0x10FFFF) fail(kSyntaxError, "illegal Unicode character");
    if (code >= 0xD800 && code < 0xE000)
      fail(kUnsupported, "half of a surrogate pair (\\u{:04x}) in a string", static_cast<uint32_t>(code));
    append_utf8(out, code);
  }

  std::string_view source_;
  size_t at_ = 0;
  bool line_starting_ = true;
  LexResult result_;
};

}  // namespace

const char* describe(Tok kind) {
  switch (kind) {
    case Tok::Data:
      return "template data / text";
    case Tok::VariableBegin:
      return "begin of print statement";
    case Tok::VariableEnd:
      return "end of print statement";
    case Tok::BlockBegin:
      return "begin of statement block";
    case Tok::BlockEnd:
      return "end of statement block";
    case Tok::Name:
      return "name";
    case Tok::String:
      return "string";
    case Tok::Integer:
      return "integer";
    case Tok::Float:
      return "float";
    case Tok::Eof:
      return "end of template";
    default:
      for (const Operator& op : kOperators) {
        if (op.kind == kind) return op.text.data();
      }
      return "?";
  }
}

std::string describe(const Token& token) {
  return token.kind == Tok::Name ? token.text : describe(token.kind);
}

std::string normalise_source(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
    } else {
      out += source[i];
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

LexResult lex(std::string_view normalised) { return Lexer(normalised).run(); }

}  // namespace cyb::jinja
