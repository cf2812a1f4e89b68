// SPDX-License-Identifier: Apache-2.0
// `format % arguments` and str.format.
#include <algorithm>
#include <cmath>

#include "text/template/library.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

// ---------------------------------------------------------------------------------------------- %

class Percent {
 public:
  Percent(const Value& format, const Value& arguments)
      : format_(format), text_(format.text()), arguments_(arguments) {
    tuple_ = arguments.is(Kind::Tuple);
    mapping_ = !tuple_ && (arguments.is(Kind::Dict) || arguments.is(Kind::List) ||
                           arguments.is(Kind::Range) || arguments.is(Kind::Undefined));
  }

  Value run() {
    while (at_ < text_.size()) {
      size_t percent = text_.find('%', at_);
      add(text_.substr(at_, percent == text_.npos ? text_.npos : percent - at_));
      if (percent == text_.npos) break;
      at_ = percent + 1;
      directive();
    }
    size_t left = tuple_ ? arguments_.items().size() - used_ : (used_ == 0 && !mapping_ ? 1 : 0);
    if (left > 0) fail(kTypeError, "not all arguments converted during string formatting");
    return Value::string(std::move(out_), format_.is_safe());
  }

 private:
  void add(std::string_view piece) {
    Meter::current().string(out_.size() + piece.size());
    out_ += piece;
  }

  char next() {
    if (at_ >= text_.size()) fail(kValueError, "incomplete format");
    return text_[at_++];
  }

  Value argument() {
    if (keyed_) return key_value_;
    if (tuple_) {
      if (used_ >= arguments_.items().size()) fail(kTypeError, "not enough arguments for format string");
      return arguments_.items()[used_++];
    }
    if (used_++ > 0) fail(kTypeError, "not enough arguments for format string");
    return arguments_;
  }

  int64_t number_or_star(char& c) {
    if (c == '*') {
      Value v = argument();
      if (!v.is_integral()) fail(kTypeError, "* wants int");
      c = next();
      return index_of(v);
    }
    int64_t n = 0;
    while (c >= '0' && c <= '9') {
      n = n * 10 + (c - '0');
      if (n > (1ll << 31)) fail(kValueError, "width too big");
      c = next();
    }
    return n;
  }

  void directive() {
    keyed_ = left_ = plus_ = space_ = alternate_ = zero_ = false;
    char c = next();
    if (c == '(') {
      if (!mapping_) fail(kTypeError, "format requires a mapping");
      size_t start = at_;
      for (int depth = 1; depth > 0;) {
        if (at_ >= text_.size()) fail(kValueError, "incomplete format key");
        if (text_[at_] == '(') ++depth;
        if (text_[at_] == ')') --depth;
        ++at_;
      }
      Value key = Value::string(std::string(text_.substr(start, at_ - 1 - start)));
      if (arguments_.is(Kind::Undefined)) fail_undefined(arguments_);
      if (!arguments_.is(Kind::Dict))
        fail(kTypeError, "{} indices must be integers or slices, not str", type_name(arguments_));
      const Value* found = arguments_.as_dict().find(key);
      if (!found) fail(kKeyError, "{}", repr(key));
      key_value_ = *found;
      keyed_ = true;
      c = next();
    }
    for (bool flags = true; flags;) {
      switch (c) {
        case '-':
          left_ = true;
          break;
        case '+':
          plus_ = true;
          break;
        case ' ':
          space_ = true;
          break;
        case '#':
          alternate_ = true;
          break;
        case '0':
          zero_ = true;
          break;
        default:
          flags = false;
          continue;
      }
      c = next();
    }
    int64_t width = number_or_star(c);
    if (width < 0) {
      left_ = true;
      width = -width;
    }
    int64_t precision = -1;
    if (c == '.') {
      c = next();
      precision = std::max<int64_t>(number_or_star(c), 0);
    }
    if (c == 'h' || c == 'l' || c == 'L') c = next();
    if (c == '%') return add("%");
    convert(c, width, precision);
  }

  void convert(char c, int64_t width, int64_t precision) {
    switch (c) {
      case 's':
      case 'r':
      case 'a': {
        Value v = argument();
        std::string text = c == 's' ? str(v) : c == 'r' ? repr(v) : ascii_escaped(repr(v));
        if (format_.is_safe() && !(c == 's' && v.is_safe())) text = escape_html(std::string_view(text));
        if (precision >= 0) text.resize(byte_offset(text, static_cast<size_t>(precision)));
        return padded("", text, width, false);
      }
      case 'c':
        return character(width);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(c, width, precision);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G': {
        Value v = argument();
        if (v.is(Kind::Undefined)) fail_undefined(v);
        if (!v.is_number()) fail(kTypeError, "must be real number, not {}", type_name(v));
        double d = v.as_float();
        bool negative = std::signbit(d) && !std::isnan(d);
        int places = precision < 0 ? 6 : static_cast<int>(std::min<int64_t>(precision, 1 << 30));
        return padded(sign(negative), float_digits(std::fabs(d), c, places, alternate_), width, true);
      }
      default: {
        --at_;
        size_t start = at_;
        char32_t code = next_code_point(text_, at_);
        fail(kValueError, "unsupported format character '{}' (0x{:x}) at index {}",
             code < 0x80 && is_printable(code) ? utf8(code) : "?", static_cast<uint32_t>(code),
             count_code_points(text_.substr(0, start)));
      }
    }
  }

  std::string sign(bool negative) const { return negative ? "-" : plus_ ? "+" : space_ ? " " : ""; }

  void character(int64_t width) {
    Value v = argument();
    if (v.is(Kind::Str)) {
      if (v.as<Str>().length() != 1) fail(kTypeError, "%c requires int or char");
      return padded("", v.text(), width, false);
    }
    if (!v.is_integral()) fail(kTypeError, "%c requires int or char");
    if (v.as_int() < 0 || v.as_int() > 0x10FFFF || (v.as_int() >= 0xD800 && v.as_int() < 0xE000))
      fail(kOverflowError, "%c arg not in range(0x110000)");
    padded("", utf8(static_cast<char32_t>(v.as_int())), width, false);
  }

  void integer(char c, int64_t width, int64_t precision) {
    Value v = argument();
    bool decimal = c == 'd' || c == 'i' || c == 'u';
    if (v.is(Kind::Undefined) && decimal) fail_undefined(v);
    Int128 i;
    if (v.is_integral()) {
      i = v.as_int();
    } else if (v.is(Kind::Float) && decimal) {
      double d = v.as_float();
      if (std::isnan(d)) fail(kValueError, "cannot convert float NaN to integer");
      if (std::isinf(d)) fail(kOverflowError, "cannot convert float infinity to integer");
      if (std::fabs(d) > 1e38) fail(kUnsupported, "an integer of more than 127 bits");
      i = static_cast<Int128>(d);
    } else {
      fail(kTypeError, "%{} format: {} is required, not {}", c, decimal ? "a real number" : "an integer",
           type_name(v));
    }
    std::string digits = int_text(i, decimal ? 10 : c == 'o' ? 8 : 16, c == 'X');
    if (precision > static_cast<int64_t>(digits.size())) {
      Meter::current().string(static_cast<uint64_t>(precision));
      digits.insert(0, static_cast<size_t>(precision) - digits.size(), '0');
    }
    std::string prefix = sign(i < 0);
    if (alternate_ && !decimal) prefix += std::string("0") + c;
    padded(prefix, digits, width, true);
  }

  void padded(const std::string& prefix, const std::string& body, int64_t width, bool number) {
    int64_t space = width - static_cast<int64_t>(count_code_points(prefix) + count_code_points(body));
    if (space <= 0) return add(prefix + body);
    Meter::current().string(static_cast<uint64_t>(space));
    if (left_) return add(prefix + body + std::string(static_cast<size_t>(space), ' '));
    if (zero_ && number) return add(prefix + std::string(static_cast<size_t>(space), '0') + body);
    add(std::string(static_cast<size_t>(space), ' ') + prefix + body);
  }

  Value format_;
  std::string_view text_;
  Value arguments_;
  bool tuple_, mapping_;
  size_t at_ = 0, used_ = 0;
  std::string out_;
  bool keyed_ = false, left_ = false, plus_ = false, space_ = false, alternate_ = false, zero_ = false;
  Value key_value_;
};

// ---------------------------------------------------------------------------------------------- str.format

class Formatter {
 public:
  Formatter(bool escape, const Args& args) : escape_(escape), args_(args) {}

  std::string run(std::string_view text, int depth) {
    if (depth < 0) fail(kValueError, "Max string recursion exceeded");
    std::string out;
    auto add = [&](std::string_view piece) {
      Meter::current().string(out.size() + piece.size());
      out += piece;
    };
    for (size_t at = 0; at < text.size();) {
      size_t brace = text.find_first_of("{}", at);
      add(text.substr(at, brace == text.npos ? text.npos : brace - at));
      if (brace == text.npos) break;
      at = brace + 1;
      if (at < text.size() && text[at] == text[brace]) {
        add(text.substr(at++, 1));
        continue;
      }
      if (text[brace] == '}') fail(kValueError, "Single '}}' encountered in format string");
      if (at >= text.size()) fail(kValueError, "Single '{{' encountered in format string");
      add(field(text, at, depth));
    }
    return out;
  }

 private:
  std::string field(std::string_view text, size_t& at, int depth) {
    size_t start = at;
    char c = 0;
    while (at < text.size()) {
      c = text[at++];
      if (c == '{') fail(kValueError, "unexpected '{{' in field name");
      if (c == '[') {
        while (at < text.size() && text[at] != ']') ++at;
      } else if (c == '}' || c == ':' || c == '!') {
        break;
      }
    }
    if (c != '}' && c != ':' && c != '!') fail(kValueError, "expected '}}' before end of string");
    std::string_view name = text.substr(start, at - 1 - start);
    char conversion = 0;
    std::string_view spec;
    if (c == '!') {
      if (at >= text.size()) fail(kValueError, "end of string while looking for conversion specifier");
      conversion = text[at++];
      if (at >= text.size()) fail(kValueError, "unmatched '{{' in format spec");
      c = text[at++];
      if (c != '}' && c != ':') fail(kValueError, "expected ':' after conversion specifier");
    }
    if (c == ':') {
      size_t spec_start = at;
      int open = 1;
      while (open > 0) {
        if (at >= text.size()) fail(kValueError, "unmatched '{{' in format spec");
        if (text[at] == '{') ++open;
        if (text[at] == '}') --open;
        ++at;
      }
      spec = text.substr(spec_start, at - 1 - spec_start);
    }
    Value v = lookup(name);
    if (conversion == 'r') {
      v = Value::string(repr(v));
    } else if (conversion == 's') {
      v = Value::string(str(v));
    } else if (conversion == 'a') {
      v = Value::string(ascii_escaped(repr(v)));
    } else if (conversion) {
      fail(kValueError, "Unknown conversion specifier {}", conversion);
    }
    std::string expanded = run(spec, depth - 1);
    if (!escape_) return format_value(v, expanded);
    if (v.is_safe()) {
      if (!expanded.empty()) fail(kValueError, "Unsupported format specification for Markup.");
      return v.text();
    }
    return escape_html(std::string_view(format_value(v, expanded)));
  }

  static bool all_digits(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  }

  static size_t index(std::string_view digits) {
    if (digits.size() > 9) fail(kValueError, "Too many decimal digits in format string");
    return static_cast<size_t>(std::stoul(std::string(digits)));
  }

  Value first(std::string_view name, bool automatic) {
    if (automatic || all_digits(name)) {
      size_t i;
      if (automatic) {
        if (manual_)
          fail(kValueError, "cannot switch from manual field specification to automatic field numbering");
        i = automatic_++;
      } else {
        i = index(name);
      }
      if (i >= args_.positional.size())
        fail(kIndexError, "Replacement index {} out of range for positional args tuple", i);
      return args_.positional[i];
    }
    for (const auto& [key, value] : args_.named) {
      if (key == name) return value;
    }
    fail(kKeyError, "{}", quoted(name));
  }

  Value lookup(std::string_view name) {
    if (all_digits(name)) {
      if (automatic_ > 0)
        fail(kValueError, "cannot switch from manual field specification to automatic field numbering");
      manual_ = true;
    }
    size_t at = std::min(name.find_first_of(".["), name.size());
    Value v = first(name.substr(0, at), name.empty());
    while (at < name.size()) {
      if (name[at] == '.') {
        size_t end = std::min(name.find_first_of(".[", at + 1), name.size());
        if (end == at + 1) fail(kValueError, "Empty attribute in format string");
        v = get_attribute(v, name.substr(at + 1, end - at - 1));
        at = end;
      } else if (name[at] == '[') {
        size_t end = name.find(']', at);
        if (end == name.npos) fail(kValueError, "Missing ']' in format string");
        std::string_view key = name.substr(at + 1, end - at - 1);
        if (key.empty()) fail(kValueError, "Empty attribute in format string");
        v = get_item(v, all_digits(key) ? Value::integer(static_cast<int64_t>(index(key)))
                                        : Value::string(std::string(key)));
        at = end + 1;
      } else {
        fail(kValueError, "Only '.' or '[' may follow ']' in format field specifier");
      }
    }
    return v;
  }

  bool escape_;
  const Args& args_;
  size_t automatic_ = 0;
  bool manual_ = false;
};

}  // namespace

Value percent_format(const Value& format, const Value& arguments) { return Percent(format, arguments).run(); }

std::string str_format(const Value& format, const Args& args) {
  return Formatter(format.is_safe(), args).run(format.text(), 2);
}

}  // namespace cyb::jinja
