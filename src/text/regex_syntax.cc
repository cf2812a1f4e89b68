// SPDX-License-Identifier: Apache-2.0
// From Oniguruma's Ruby syntax, which tokenizer.json patterns are written for, to PCRE2's. What differs:
// \s, \w, \b follow Unicode's own properties; \h is a hexadecimal digit; (?m) lets the dot match newlines;
// a{1,2}+ is a repetition of a repetition; an option without group reaches to the end of the group over all
// alternatives; sets nest and intersect ([a-z&&[^x]]); \p{Han} is the script, not its extensions.
#include <cctype>

#include "base/error.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr const char* kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr const char* kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : p_(pattern) {}

  std::string run() {
    group(0);
    if (i_ < p_.size()) fail("unmatched ')'");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw error(ErrorKind::Tokenizer, "regular expression '{}': {} at {}", p_, what, i_)
        .advise("the tokenizer's pattern is wrong, or uses syntax that is not supported");
  }
  bool at(std::string_view s) const { return p_.substr(i_).starts_with(s); }
  char peek() const { return i_ < p_.size() ? p_[i_] : '\0'; }
  bool more() const { return i_ < p_.size(); }

  // Up to ')' or the end.
  void group(int depth) {
    if (depth > 100) fail("groups nested too deep");
    int options = 0;  // option groups that end where this one does
    while (more() && peek() != ')') {
      if (at("(?") && isolated_option()) {
        ++options;
        continue;
      }
      size_t start = out_.size();
      atom(depth);
      quantifiers(start);
    }
    out_.append(static_cast<size_t>(options), ')');
  }

  // "(?i)" becomes "(?i:".
  bool isolated_option() {
    size_t j = i_ + 2;
    while (j < p_.size() && (p_[j] == 'i' || p_[j] == 'm' || p_[j] == 'x' || p_[j] == '-')) ++j;
    if (j >= p_.size() || p_[j] != ')' || j == i_ + 2) return false;
    out_ += "(?";
    for (i_ += 2; i_ < j; ++i_) out_ += p_[i_] == 'm' ? 's' : p_[i_];
    out_ += ':';
    ++i_;
    return true;
  }

  void atom(int depth) {
    switch (char c = peek()) {
      case '(':
        return open(depth);
      case '[': {
        ++i_;
        out_ += set(depth);
        return;
      }
      case '\\':
        return escape();
      default:
        out_ += p_.substr(i_, utf8_length(c));
        i_ += utf8_length(c);
    }
  }

  void open(int depth) {
    ++i_;
    out_ += '(';
    if (peek() == '?') {
      static constexpr std::string_view kinds[] = {"?:", "?=", "?!", "?>", "?<=", "?<!"};
      bool known = false;
      for (std::string_view kind : kinds) {
        if (known || !at(kind)) continue;
        out_ += kind;
        i_ += kind.size();
        known = true;
      }
      if (!known && at("?#")) {
        size_t close = p_.find(')', i_);
        if (close == std::string_view::npos) fail("comment without end");
        out_.pop_back();
        i_ = close + 1;
        return;
      }
      if (!known && at("?<")) {
        size_t close = p_.find('>', i_);
        if (close == std::string_view::npos) fail("group name without end");
        out_ += p_.substr(i_, close + 1 - i_);
        i_ = close + 1;
        known = true;
      }
      if (!known) {
        for (out_ += '?', ++i_; more() && peek() != ':'; ++i_) {
          char c = peek();
          if (c != 'i' && c != 'm' && c != 'x' && c != '-') fail("unknown group");
          out_ += c == 'm' ? 's' : c;
        }
        if (!more()) fail("group without end");
        out_ += ':';
        ++i_;
      }
    }
    group(depth + 1);
    if (!more()) fail("missing ')'");
    ++i_;
    out_ += ')';
  }

  // A backslash outside of a set.
  void escape() {
    if (i_ + 1 >= p_.size()) fail("backslash at the end");
    char c = p_[i_ + 1];
    auto emit = [&](std::string_view text) {
      out_ += text;
      i_ += 2;
    };
    switch (c) {
      case 'A':
      case 'z':
      case 'Z':
      case 'G':
        return emit(p_.substr(i_, 2));
      case 'b':
        return emit(fmt::format("(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))", kWord));
      case 'B':
        return emit(fmt::format("(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))", kWord));
      case '1':
      case '2':
      case '3':
      case '4':
      case '5':
      case '6':
      case '7':
      case '8':
      case '9':
        return emit(p_.substr(i_, 2));
      default:
        break;
    }
    bool single = false;
    std::string item = set_item(&single);
    if (single)
      out_ += item;
    else
      out_ += "[" + item + "]";
  }

  // The escape at i_ as it stands inside of a PCRE2 set. `single`: it means the same outside of one.
  std::string set_item(bool* single) {
    *single = false;
    char c = p_[i_ + 1];
    auto take = [&](std::string text) {
      i_ += 2;
      return text;
    };
    switch (c) {
      case 's':
        return take(kSpace);
      case 'w':
        return take(kWord);
      case 'h':
        return take("0-9a-fA-F");
      case 'S':
        return take(negated_set(kSpace));
      case 'W':
        return take(negated_set(kWord));
      case 'H':
        return take(negated_set("0-9a-fA-F"));
      case 'd':
        *single = true;
        return take("\\d");
      case 'D':
        *single = true;
        return take("\\D");
      case 'p':
      case 'P':
        *single = true;
        return property();
      case 'u':
      case 'x':
        *single = true;
        return hexadecimal();
      case 't':
      case 'n':
      case 'r':
      case 'f':
      case 'e':
      case 'a':
        *single = true;
        return take(std::string(p_.substr(i_, 2)));
      case 'v':
        *single = true;
        return take("\\x{b}");
      default:
        break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
      fail(fmt::format("escape '\\{}' is not supported", c));
    *single = true;
    if (static_cast<unsigned char>(c) < 0x80) return take(std::string(p_.substr(i_, 2)));
    std::string literal(p_.substr(i_ + 1, utf8_length(c)));
    i_ += 1 + literal.size();
    return literal;
  }

  // The ranges outside of `ranges`, a list of \x{..}, \x{..}-\x{..}, a-b: no set can hold a negated set in
  // PCRE2.
  std::string negated_set(std::string_view ranges) {
    if (ranges == kSpace)
      return R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
             R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{d7ff}\x{e000}-\x{10ffff})";
    if (ranges == kWord) {
      if (in_set_) fail("\\W inside of a set is not supported");
      return "^" + std::string(kWord);
    }
    return R"(\x{0}-/:-@G-`g-\x{d7ff}\x{e000}-\x{10ffff})";
  }

  std::string property() {
    if (i_ + 2 >= p_.size()) fail("property without name");
    if (p_[i_ + 2] != '{') {
      std::string text(p_.substr(i_, 3));
      i_ += 3;
      return text;
    }
    size_t close = p_.find('}', i_);
    if (close == std::string_view::npos) fail("property without '}'");
    std::string_view name = p_.substr(i_ + 3, close - i_ - 3);
    bool negated = p_[i_ + 1] == 'P';
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    i_ = close + 1;
    static constexpr std::string_view long_names[][2] = {{"Letter", "L"},
                                                         {"Mark", "M"},
                                                         {"Number", "N"},
                                                         {"Punctuation", "P"},
                                                         {"Symbol", "S"},
                                                         {"Separator", "Z"},
                                                         {"Uppercase_Letter", "Lu"},
                                                         {"Lowercase_Letter", "Ll"},
                                                         {"Titlecase_Letter", "Lt"},
                                                         {"Modifier_Letter", "Lm"},
                                                         {"Other_Letter", "Lo"},
                                                         {"Nonspacing_Mark", "Mn"},
                                                         {"Spacing_Mark", "Mc"},
                                                         {"Decimal_Number", "Nd"},
                                                         {"Letter_Number", "Nl"},
                                                         {"Other_Number", "No"}};
    for (auto& [from, to] : long_names)
      if (name == from) name = to;
    // One or two letters are a general category; the properties are the same in both; the rest are scripts.
    bool plain = name.size() <= 2 || name == "Any" || name == "Alphabetic" || name == "White_Space" ||
                 name == "Emoji" || name == "Extended_Pictographic" || name == "Ideographic" ||
                 name == "Uppercase" || name == "Lowercase";
    return fmt::format("\\{}{{{}{}}}", negated ? 'P' : 'p', plain ? "" : "sc:", name);
  }

  std::string hexadecimal() {
    size_t j = i_ + 2;
    size_t most = p_[i_ + 1] == 'u' ? 4 : 2;
    bool braces = j < p_.size() && p_[j] == '{';
    if (braces) ++j, most = 8;
    size_t begin = j;
    while (j < p_.size() && j - begin < most && std::isxdigit(static_cast<unsigned char>(p_[j]))) ++j;
    std::string digits(p_.substr(begin, j - begin));
    if (digits.empty() || (braces && (j >= p_.size() || p_[j] != '}'))) fail("hexadecimal digits expected");
    i_ = braces ? j + 1 : j;
    return fmt::format("\\x{{{}}}", digits);
  }

  // A set whose '[' has been read, as an expression that matches one code point.
  std::string set(int depth) {
    if (depth > 100) fail("sets nested too deep");
    bool outer = std::exchange(in_set_, true);
    bool negated = peek() == '^';
    if (negated) ++i_;
    std::string conditions, items;    // of "a&&b&&c": lookaheads for a, b; the items of c
    std::vector<std::string> nested;  // alternatives of the current part that are sets themselves
    auto part = [&] {
      std::string text = nested.empty() || !items.empty() ? "[" + items + "]" : "";
      for (const std::string& n : nested) text += (text.empty() ? "" : "|") + n;
      if (items.empty() && nested.empty()) fail("empty set");
      return nested.empty() ? text : "(?:" + text + ")";
    };
    bool first = true;
    for (;; first = false) {
      if (!more()) fail("set without ']'");
      char c = peek();
      if (c == ']' && !first) break;
      if (at("&&")) {
        i_ += 2;
        conditions += "(?=" + part() + ")";
        items.clear();
        nested.clear();
      } else if (at("[:")) {
        size_t close = p_.find(":]", i_);
        if (close == std::string_view::npos) fail("'[:' without ':]'");
        items += p_.substr(i_, close + 2 - i_);
        i_ = close + 2;
      } else if (c == '[') {
        ++i_;
        nested.push_back(set(depth + 1));
      } else if (c == '\\') {
        if (i_ + 1 >= p_.size()) fail("backslash at the end");
        if (p_[i_ + 1] == 'b') {
          items += "\\x{8}";
          i_ += 2;
        } else {
          bool single;
          items += set_item(&single);
        }
      } else {
        // ']' first in a set is literal; PCRE2 agrees only if it stays first.
        if (c == ']') items += '\\';
        items += p_.substr(i_, utf8_length(c));
        i_ += utf8_length(c);
      }
    }
    ++i_;
    in_set_ = outer;
    if (conditions.empty() && nested.empty()) {
      if (items.empty()) fail("empty set");
      return (negated ? "[^" : "[") + items + "]";
    }
    std::string whole = conditions + part();
    return negated ? "(?:(?!" + whole + R"()[\x{0}-\x{10ffff}]))" : "(?:" + whole + ")";
  }

  void quantifiers(size_t start) {
    while (more()) {
      char c = peek();
      if (c == '*' || c == '+' || c == '?') {
        out_ += c;
        ++i_;
        if (peek() == '?' || peek() == '+') {  // lazy or possessive
          out_ += peek();
          ++i_;
        }
      } else if (c == '{') {
        size_t close = p_.find('}', i_);
        std::string_view body =
            close == std::string_view::npos ? std::string_view() : p_.substr(i_ + 1, close - i_ - 1);
        if (body.empty() || body == "," || body.find_first_not_of("0123456789,") != std::string_view::npos) {
          out_ += "\\{";  // not a repetition: literal
          start = out_.size() - 2;
          ++i_;
          continue;
        }
        i_ = close + 1;
        out_ += body.front() == ',' ? "{0" + std::string(body) + "}" : "{" + std::string(body) + "}";
        if (peek() == '?') {
          if (body.find(',') == std::string_view::npos) fail("'{n}?' is not supported");
          out_ += '?';
          ++i_;
        }
      } else {
        return;
      }
      // What follows repeats the repetition.
      c = peek();
      if (c == '*' || c == '+' || c == '?' || (c == '{' && out_.back() == '}')) {
        out_.insert(start, "(?:");
        out_ += ')';
      }
    }
  }

  std::string_view p_;
  size_t i_ = 0;
  bool in_set_ = false;
  std::string out_;
};

}  // namespace

std::string regex_to_pcre2(std::string_view pattern) {
  if (!utf8_valid(pattern)) throw error(ErrorKind::Tokenizer, "a regular expression is not valid UTF-8");
  return Translator(pattern).run();
}

}  // namespace cyb
