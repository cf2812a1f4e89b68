// SPDX-License-Identifier: Apache-2.0
// Python's format specifications for numbers and text: format(value,
// "[[fill]align][sign][#][0][width][,][.precision][type]").
#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/library.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

struct Spec {
  std::string fill = " ";
  char align = 0;
  char sign = '-';
  bool negative_zero = false;  // 'z'
  bool alternate = false;
  int64_t width = -1;
  char grouping = 0;
  int64_t precision = -1;
  char type = 0;
};

int64_t number(std::string_view text, size_t& at) {
  int64_t value = 0;
  size_t start = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    value = value * 10 + (text[at++] - '0');
    if (value > (1ll << 40)) fail(kValueError, "Too many decimal digits in format string");
  }
  return at == start ? -1 : value;
}

Spec parse_spec(std::string_view text, const Value& v) {
  Spec spec;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '=' || c == '^'; };
  size_t at = 0;
  bool fill_given = false;
  if (!text.empty()) {
    size_t after = 0;
    next_code_point(text, after);
    if (after < text.size() && is_align(text[after])) {
      spec.fill = text.substr(0, after);
      spec.align = text[after];
      at = after + 1;
      fill_given = true;
    } else if (is_align(text[0])) {
      spec.align = text[0];
      at = 1;
    }
  }
  auto skip = [&](char c) {
    if (at >= text.size() || text[at] != c) return false;
    ++at;
    return true;
  };
  if (at < text.size() && (text[at] == '+' || text[at] == '-' || text[at] == ' ')) spec.sign = text[at++];
  spec.negative_zero = skip('z');
  spec.alternate = skip('#');
  if (!fill_given && skip('0')) {
    spec.fill = "0";
    if (!spec.align) spec.align = v.is(Kind::Str) ? '<' : '=';
  }
  spec.width = number(text, at);
  if (at < text.size() && (text[at] == ',' || text[at] == '_')) spec.grouping = text[at++];
  if (skip('.')) {
    spec.precision = number(text, at);
    if (spec.precision < 0) fail(kValueError, "Format specifier missing precision");
  }
  if (at < text.size()) spec.type = text[at++];
  if (at < text.size()) {
    fail(kValueError, "Invalid format specifier '{}' for object of type '{}'", text, type_name(v));
  }
  return spec;
}

[[noreturn]] void unknown_type(const Spec& spec, const Value& v) {
  fail(kValueError, "Unknown format code '{}' for object of type '{}'", spec.type, type_name(v));
}

std::string repeated(const std::string& fill, int64_t count) {
  if (count <= 0) return {};
  Meter::current().string(static_cast<uint64_t>(count) * fill.size());
  std::string out;
  for (int64_t i = 0; i < count; ++i) out += fill;
  return out;
}

std::string aligned(const std::string& prefix, const std::string& body, const Spec& spec, char otherwise) {
  int64_t space = spec.width - static_cast<int64_t>(count_code_points(prefix) + count_code_points(body));
  if (space <= 0) return prefix + body;
  switch (spec.align ? spec.align : otherwise) {
    case '<':
      return prefix + body + repeated(spec.fill, space);
    case '^':
      return repeated(spec.fill, space / 2) + prefix + body + repeated(spec.fill, space - space / 2);
    case '=':
      return prefix + repeated(spec.fill, space) + body;
    default:
      return repeated(spec.fill, space) + prefix + body;
  }
}

// Thousands separators, with zeros to the width where zeros fill it.
std::string grouped(std::string digits, const std::string& rest, const Spec& spec, size_t prefix) {
  if (!spec.grouping) return digits + rest;
  if (spec.width > 0) Meter::current().string(static_cast<uint64_t>(spec.width));
  size_t group = spec.type == 'b' || spec.type == 'o' || spec.type == 'x' || spec.type == 'X' ? 4 : 3;
  auto separated = [&](const std::string& d) {
    std::string out;
    for (size_t i = 0; i < d.size(); ++i) {
      if (i > 0 && (d.size() - i) % group == 0) out += spec.grouping;
      out += d[i];
    }
    return out;
  };
  if (spec.fill == "0" && spec.align == '=') {
    int64_t room = spec.width - static_cast<int64_t>(prefix + rest.size());
    auto count = static_cast<int64_t>(digits.size());
    while (count + (count - 1) / static_cast<int64_t>(group) < room) ++count;
    digits.insert(0, static_cast<size_t>(count) - digits.size(), '0');
  }
  return separated(digits) + rest;
}

std::string sign_text(bool negative, const Spec& spec) {
  return negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

std::string format_float(double d, const Value& v, Spec spec) {
  char type = spec.type;
  if (type == 'n') type = 'g';
  if (spec.type == 'n' && spec.grouping) fail(kValueError, "Cannot specify '{}' with 'n'.", spec.grouping);
  std::string digits;
  double magnitude = std::fabs(d);
  bool percent = type == '%';
  if (percent) {
    magnitude *= 100;
    type = 'f';
  }
  int precision = static_cast<int>(std::min<int64_t>(spec.precision, 1 << 30));
  if (type == 0 && precision < 0 && !spec.alternate) {
    digits = float_repr(magnitude);
  } else if (type == 0) {
    if (precision < 0) precision = 17;
    digits = float_digits(magnitude, 'r', precision, spec.alternate);
  } else if (std::string_view("eEfFgG").find(type) != std::string_view::npos) {
    digits = float_digits(magnitude, type, precision < 0 ? 6 : precision, spec.alternate);
  } else {
    unknown_type(spec, v);
  }
  bool negative = std::signbit(d) && !std::isnan(d);
  if (spec.negative_zero && negative && digits.find_first_of("123456789") == std::string::npos &&
      std::isfinite(d))
    negative = false;
  size_t whole = 0;
  while (whole < digits.size() && digits[whole] >= '0' && digits[whole] <= '9') ++whole;
  std::string prefix = sign_text(negative, spec);
  std::string body =
      grouped(digits.substr(0, whole), digits.substr(whole) + (percent ? "%" : ""), spec, prefix.size());
  return aligned(prefix, body, spec, '>');
}

std::string format_int(const Value& v, Spec spec) {
  Int128 i = v.as_int();
  if (spec.precision >= 0 && std::string_view("eEfFgG%").find(spec.type) == std::string_view::npos) {
    fail(kValueError, "Precision not allowed in integer format specifier");
  }
  std::string prefix = sign_text(i < 0, spec);
  unsigned base = 10;
  switch (spec.type) {
    case 0:
    case 'd':
    case 'n':
      break;
    case 'b':
      base = 2;
      break;
    case 'o':
      base = 8;
      break;
    case 'x':
    case 'X':
      base = 16;
      break;
    case 'c':
      if (spec.sign != '-') fail(kValueError, "Sign not allowed with integer format specifier 'c'");
      if (i < 0 || i > 0x10FFFF || (i >= 0xD800 && i < 0xE000))
        fail(kOverflowError, "%c arg not in range(0x110000)");
      return aligned("", utf8(static_cast<char32_t>(i)), spec, '<');
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return format_float(static_cast<double>(i), v, spec);
    default:
      unknown_type(spec, v);
  }
  if (spec.grouping == ',' && base != 10) fail(kValueError, "Cannot specify ',' with '{}'.", spec.type);
  if (spec.alternate && base != 10) prefix += std::string("0") + spec.type;
  std::string body = grouped(int_text(i, base, spec.type == 'X'), "", spec, prefix.size());
  return aligned(prefix, body, spec, '>');
}

std::string format_text(const Value& v, const Spec& spec) {
  if (spec.type && spec.type != 's') unknown_type(spec, v);
  if (spec.sign != '-') fail(kValueError, "Sign not allowed in string format specifier");
  if (spec.alternate) fail(kValueError, "Alternate form (#) not allowed in string format specifier");
  if (spec.align == '=') fail(kValueError, "'=' alignment not allowed in string format specifier");
  if (spec.grouping) fail(kValueError, "Cannot specify '{}' with 's'.", spec.grouping);
  std::string text = v.text();
  if (spec.precision >= 0) text.resize(byte_offset(text, static_cast<size_t>(spec.precision)));
  return aligned("", text, spec, '<');
}

}  // namespace

std::string float_digits(double d, char letter, int precision, bool alternate) {
  bool upper = letter >= 'A' && letter <= 'Z';
  auto cased = [&](std::string text) {
    if (upper)
      std::transform(text.begin(), text.end(), text.begin(),
                     [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
    return text;
  };
  std::string sign = std::signbit(d) && !std::isnan(d) ? "-" : "";
  d = std::fabs(d);
  if (std::isnan(d)) return cased("nan");
  if (std::isinf(d)) return cased(sign + "inf");
  Meter::current().string(static_cast<uint64_t>(precision) + 400);
  auto digits = [&](std::chars_format format, int places) {
    std::string buffer(static_cast<size_t>(places) + 400, '\0');
    auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), d, format, places);
    buffer.resize(static_cast<size_t>(result.ptr - buffer.data()));
    if (alternate && places == 0) buffer.insert(std::min(buffer.find('e'), buffer.size()), ".");
    return buffer;
  };
  char kind = upper ? static_cast<char>(letter + 32) : letter;
  if (kind == 'f') return cased(sign + digits(std::chars_format::fixed, precision));
  if (kind == 'e') return cased(sign + digits(std::chars_format::scientific, precision));
  // g; 'r' is g that always shows a float.
  if (precision == 0) precision = 1;
  std::string scientific = digits(std::chars_format::scientific, precision - 1);
  size_t e = scientific.find('e');
  int exponent = std::atoi(scientific.c_str() + e + 1);
  bool use_exponent = exponent < -4 || exponent >= precision - (kind == 'r' ? 1 : 0);
  std::string text = use_exponent ? scientific.substr(0, e)
                                  : digits(std::chars_format::fixed, std::max(precision - 1 - exponent, 0));
  if (!alternate && text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  if (kind == 'r' && !use_exponent && text.find('.') == std::string::npos) text += ".0";
  return cased(sign + text + (use_exponent ? scientific.substr(e) : ""));
}

std::string format_value(const Value& v, std::string_view spec) {
  if (spec.empty()) return str(v);
  switch (v.kind()) {
    case Kind::Bool:
    case Kind::Int:
      return format_int(v, parse_spec(spec, v));
    case Kind::Float:
      return format_float(v.as_float(), v, parse_spec(spec, v));
    case Kind::Str:
      return format_text(v, parse_spec(spec, v));
    default:
      fail(kTypeError, "unsupported format string passed to {}.__format__", type_name(v));
  }
}

}  // namespace cyb::jinja
