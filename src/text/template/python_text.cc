// SPDX-License-Identifier: Apache-2.0
// str(), repr() and number text as Python has them.
#include "text/template/python_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "text/template/loop.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

void add(std::string& out, std::string_view piece) {
  if ((out.size() ^ (out.size() + piece.size())) >> 16) Meter::current().string(out.size() + piece.size());
  out += piece;
}

void append_repr(std::string& out, const Value& v);

template <class Items, class One>
void append_joined(std::string& out, const Items& items, One one) {
  Depth depth;
  bool first = true;
  for (const auto& item : items) {
    if (!first) add(out, ", ");
    first = false;
    one(item);
  }
}

void append_dict(std::string& out, const Dict& dict) {
  add(out, "{");
  append_joined(out, dict.items, [&](const auto& item) {
    append_repr(out, item.first);
    add(out, ": ");
    append_repr(out, item.second);
  });
  add(out, "}");
}

void append_view(std::string& out, const DictView& view) {
  add(out, view.part == DictView::Keys     ? "dict_keys(["
           : view.part == DictView::Values ? "dict_values(["
                                           : "dict_items([");
  std::vector<Value> items;
  for (size_t i = 0; i < view.dict->items.size(); ++i) items.push_back(view.at(i));
  append_joined(out, items, [&](const Value& item) { append_repr(out, item); });
  add(out, "])");
}

void append_repr(std::string& out, const Value& v) {
  Meter::current().work(1);
  switch (v.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
      return add(out, "Undefined");
    case Kind::None:
      return add(out, "None");
    case Kind::Bool:
      return add(out, v.truth_of_bool() ? "True" : "False");
    case Kind::Int:
      return add(out, int_text(v.as_int()));
    case Kind::Float:
      return add(out, float_repr(v.as_float()));
    case Kind::Str:
      return add(out, v.is_safe() ? "Markup(" + quoted(v.text()) + ")" : quoted(v.text()));
    case Kind::List:
      add(out, "[");
      append_joined(out, v.items(), [&](const Value& item) { append_repr(out, item); });
      return add(out, "]");
    case Kind::Tuple:
      add(out, "(");
      append_joined(out, v.items(), [&](const Value& item) { append_repr(out, item); });
      return add(out, v.items().size() == 1 ? ",)" : ")");
    case Kind::Dict:
      return append_dict(out, v.as_dict());
    case Kind::Range: {
      const auto& r = v.as<Range>();
      return add(out, r.step == 1 ? fmt::format("range({}, {})", r.start, r.stop)
                                  : fmt::format("range({}, {}, {})", r.start, r.stop, r.step));
    }
    case Kind::DictView:
      return append_view(out, v.as<DictView>());
    case Kind::Namespace:
      add(out, "<Namespace ");
      append_dict(out, *v.as<Namespace>().attributes);
      return add(out, ">");
    case Kind::Loop: {
      auto& loop = v.as<Loop>();
      return add(
          out, fmt::format("<LoopContext {}/{}>", int_text(loop.attribute("index").as_int()), loop.length()));
    }
    case Kind::Function:
      return add(out, fmt::format("<function {}>", v.as<Function>().name));
    case Kind::Macro: {
      const std::string& name = v.as<NamedCallable>().name;
      return add(out, name.empty() ? "<Macro anonymous>" : fmt::format("<Macro {}>", quoted(name)));
    }
    case Kind::Iterator:
    case Kind::Cycler:
      return add(out, fmt::format("<{} object>", type_name(v)));
  }
}

}  // namespace

std::string repr(const Value& v) {
  std::string out;
  append_repr(out, v);
  Meter::current().string(out.size());
  return out;
}

std::string str(const Value& v) {
  if (v.is(Kind::Str)) return v.text();
  if (v.is(Kind::Undefined) || v.is(Kind::Missing)) return {};
  return repr(v);
}

std::string quoted(std::string_view text) {
  Meter::current().string(text.size());
  char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      append_utf8(out, c);
    } else if (c <= 0xFF) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c <= 0xFFFF) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  out += quote;
  return out;
}

std::string ascii_escaped(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c <= 0xFF) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(c));
    } else if (c <= 0xFFFF) {
      out += fmt::format("\\u{:04x}", static_cast<uint32_t>(c));
    } else {
      out += fmt::format("\\U{:08x}", static_cast<uint32_t>(c));
    }
  }
  return out;
}

std::string int_text(Int128 i, unsigned base, bool upper) {
  auto rest = i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
  const char* digits = upper ? "0123456789ABCDEFGHIJ" : "0123456789abcdefghij";
  std::string out;
  do {
    out += digits[static_cast<size_t>(rest % base)];
    rest /= base;
  } while (rest != 0);
  std::reverse(out.begin(), out.end());
  return out;
}

std::string int_text(Int128 i) { return (i < 0 ? "-" : "") + int_text(i, 10); }

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  char buffer[64];
  auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, d, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  std::string sign;
  if (text[0] == '-') {
    sign = "-";
    text.remove_prefix(1);
  }
  size_t e = text.find('e');
  int exponent = 0;
  std::string_view exponent_text = text.substr(e + 1);
  if (exponent_text[0] == '+') exponent_text.remove_prefix(1);
  std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 1) digits += text.substr(2, e - 2);
  auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return sign + digits + std::string(static_cast<size_t>(exponent + 1 - count), '0') + ".0";
  return sign + digits.substr(0, static_cast<size_t>(exponent) + 1) + "." +
         digits.substr(static_cast<size_t>(exponent) + 1);
}

namespace {

// Digits with single underscores between them removed; nothing where they stand elsewhere.
std::optional<std::string> without_underscores(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out += text[i];
      continue;
    }
    auto alnum = [](char c) { return is_alnum(static_cast<unsigned char>(c)); };
    if (i == 0 || i + 1 == text.size() || !alnum(text[i - 1]) || !alnum(text[i + 1])) return std::nullopt;
  }
  return out;
}

// Stripped, and decimal digits of any script as ASCII.
std::string number_text(std::string_view text) {
  text = strip_left(strip_right(text));
  if (is_ascii(text)) return std::string(text);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (c >= 0x80 && is_decimal(c)) {
      // Decimal digits come in runs of ten from zero on.
      int digit = 0;
      while (digit < 9 && is_decimal(c - static_cast<char32_t>(digit) - 1)) ++digit;
      out += static_cast<char>('0' + digit);
    } else {
      append_utf8(out, c);
    }
  }
  return out;
}

}  // namespace

std::optional<Int128> parse_int(std::string_view text, int base) {
  if (text.size() > 4096) return std::nullopt;
  std::string plain = number_text(text);
  std::string_view rest = plain;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  auto prefix = [&](char letter) { return rest.size() > 1 && rest[0] == '0' && (rest[1] | 0x20) == letter; };
  int found = prefix('x') ? 16 : prefix('o') ? 8 : prefix('b') ? 2 : 0;
  bool zero_only = base == 0 && found == 0;  // base 0 refuses leading zeros
  if (found && (base == 0 || base == found)) {
    rest.remove_prefix(2);
    if (!rest.empty() && rest[0] == '_') rest.remove_prefix(1);
    base = found;
  } else if (base == 0) {
    base = 10;
  }
  if (base < 2 || base > 36) fail(kValueError, "int() base must be >= 2 and <= 36, or 0");
  auto digits = without_underscores(rest);
  if (!digits || digits->empty()) return std::nullopt;
  if (zero_only && digits->size() > 1 && (*digits)[0] == '0' &&
      digits->find_first_not_of('0') != std::string::npos)
    return std::nullopt;
  Int128 value = 0;
  for (char c : *digits) {
    int digit = c >= '0' && c <= '9'                     ? c - '0'
                : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10
                                                         : 99;
    if (digit >= base) return std::nullopt;
    if (__builtin_mul_overflow(value, static_cast<Int128>(base), &value) ||
        __builtin_sub_overflow(value, static_cast<Int128>(digit), &value)) {
      fail(kUnsupported, "an integer of more than 127 bits");
    }
  }
  if (!negative && __builtin_sub_overflow(static_cast<Int128>(0), value, &value))
    fail(kUnsupported, "an integer of more than 127 bits");
  return value;
}

std::optional<double> parse_float(std::string_view text) {
  std::string plain = number_text(text);
  std::string_view rest = plain;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  std::string lower = rest.size() <= 8 ? to_lower(rest) : std::string();
  double value;
  if (lower == "inf" || lower == "infinity") {
    value = HUGE_VAL;
  } else if (lower == "nan") {
    value = std::nan("");
  } else {
    auto digits = without_underscores(rest);
    if (!digits || digits->empty() || digits->find_first_not_of("0123456789.eE+-") != std::string::npos)
      return std::nullopt;
    if ((*digits)[0] == '+' || (*digits)[0] == '-') return std::nullopt;
    const char* end = digits->data() + digits->size();
    auto [stop, error] = std::from_chars(digits->data(), end, value);
    if (stop != end) return std::nullopt;
    if (error == std::errc::result_out_of_range)
      value = digits->find_first_of("eE") != std::string::npos && digits->find('-') != std::string::npos
                  ? 0.0
                  : HUGE_VAL;
    else if (error != std::errc())
      return std::nullopt;
  }
  return negative ? -value : value;
}

std::string escape_html(std::string_view text) {
  Meter::current().string(text.size());
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Value escape_html(const Value& v) {
  if (v.is_safe()) return v;
  return Value::string(escape_html(std::string_view(str(v))), true);
}

}  // namespace cyb::jinja
