// SPDX-License-Identifier: Apache-2.0
// The filters, by name; those on text and numbers. Those on sequences: list_filters.cc.
#include <algorithm>
#include <cmath>

#include "text/template/library.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

// soft_str: text stays as it is, Markup too.
Value soft(const Value& v) { return v.is(Kind::Str) ? v : Value::string(str(v)); }

Value str_method(std::string_view name, const Value& self, Args& args) {
  return find_str_method(name)(self, args);
}

Value upper(const Value& v, Args& args) {
  Bound("upper", args, {});
  return str_method("upper", soft(v), args);
}
Value lower(const Value& v, Args& args) {
  Bound("lower", args, {});
  return str_method("lower", soft(v), args);
}
Value capitalize(const Value& v, Args& args) {
  Bound("capitalize", args, {});
  return str_method("capitalize", soft(v), args);
}
Value string(const Value& v, Args& args) {
  Bound("string", args, {});
  return soft(v);
}
Value safe(const Value& v, Args& args) {
  Bound("safe", args, {});
  return v.is_safe() ? v : Value::string(str(v), true);
}
Value escape(const Value& v, Args& args) {
  Bound("escape", args, {});
  return escape_html(v);
}
Value force_escape(const Value& v, Args& args) {
  Bound("forceescape", args, {});
  return Value::string(escape_html(std::string_view(str(v))), true);
}

// jinja2's own title: words begin after white space and -({[<.
Value title(const Value& v, Args& args) {
  Bound("title", args, {});
  std::string text = str(v);
  Meter::current().string(text.size());
  auto begins = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  std::string out;
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    bool separator = begins(next_code_point(text, at));
    size_t after_first = at;
    while (at < text.size()) {
      size_t next = at;
      if (begins(next_code_point(text, next)) != separator) break;
      at = next;
    }
    out += to_upper(std::string_view(text).substr(start, after_first - start));
    out += to_lower(std::string_view(text).substr(after_first, at - after_first));
  }
  return Value::string(std::move(out));
}

Value trim(const Value& v, Args& args) {
  Bound bound("trim", args, {"chars"});
  Args inner;
  if (bound.has(0)) inner.positional.push_back(bound[0]);
  return str_method("strip", soft(v), inner);
}

Value center(const Value& v, Args& args) {
  Bound bound("center", args, {"width"});
  Args inner;
  inner.positional.push_back(bound.has(0) ? bound[0] : Value::integer(80));
  return str_method("center", soft(v), inner);
}

Value replace(const Value& v, Args& args) {
  Bound bound("replace", args, {"old", "new", "count"}, 2);
  Args inner;
  inner.positional = {Value::string(str(bound[0])), Value::string(str(bound[1]))};
  if (bound.has_value(2)) inner.positional.push_back(bound[2]);
  return str_method("replace", Value::string(str(v)), inner);
}

Value indent(const Value& v, Args& args) {
  Bound bound("indent", args, {"width", "first", "blank"});
  if (v.is(Kind::Undefined)) fail_undefined(v);
  std::string indention;
  bool safe_text = v.is_safe();
  if (!bound.has(0)) {
    indention = "    ";
  } else if (bound[0].is(Kind::Str)) {
    indention = bound[0].text();
  } else {
    if (bound[0].is(Kind::Undefined)) fail_undefined(bound[0]);
    int64_t width = index_of(bound[0]);
    if (width > 0) {
      Meter::current().string(static_cast<uint64_t>(width));
      indention.assign(static_cast<size_t>(width), ' ');
    }
  }
  const std::string& text = text_of(v, "value to indent");
  Meter::current().string(text.size());
  // Lines of the text and one empty line end, which jinja2 adds.
  std::vector<std::string_view> lines;
  std::string whole = text + "\n";
  size_t start = 0;
  for (size_t at = 0; at < whole.size();) {
    if (size_t end = line_end_at(whole, at)) {
      lines.push_back(std::string_view(whole).substr(start, at - start));
      at += end;
      start = at;
    } else {
      next_code_point(whole, at);
    }
  }
  bool blank = bound.flag(2, false);
  std::string out = bound.flag(1, false) ? indention : "";
  for (size_t i = 0; i < lines.size(); ++i) {
    Meter::current().string(out.size() + indention.size() + lines[i].size() + 1);
    if (i > 0) {
      out += "\n";
      if (blank || !lines[i].empty()) out += indention;
    }
    out += lines[i];
  }
  return Value::string(std::move(out), safe_text);
}

Value truncate(const Value& v, Args& args) {
  Bound bound("truncate", args, {"length", "killwords", "end", "leeway"});
  int64_t length = bound.integer(0, 255), leeway = bound.has_value(3) ? bound.integer(3, 5) : 5;
  std::string end = bound.has(2) ? text_of(bound[2], "end") : "...";
  auto end_length = static_cast<int64_t>(count_code_points(end));
  if (length < end_length) fail(kPythonAssertion, "expected length >= {}, got {}", end_length, length);
  if (leeway < 0) fail(kPythonAssertion, "expected leeway >= 0, got {}", leeway);
  if (static_cast<Int128>(length_of(v)) <= static_cast<Int128>(length) + leeway) return v;
  const std::string& text = text_of(v, "value to truncate");
  std::string cut = text.substr(0, byte_offset(text, static_cast<size_t>(length - end_length)));
  if (!bound.flag(1, false)) {
    size_t space = cut.rfind(' ');
    if (space != cut.npos) cut.resize(space);
  }
  return Value::string(cut + end, v.is_safe());
}

Value word_count(const Value& v, Args& args) {
  Bound("wordcount", args, {});
  std::string text = str(v);
  int64_t n = 0;
  bool inside = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    bool word = c == '_' || is_alnum(c);
    n += word && !inside;
    inside = word;
  }
  return Value::integer(n);
}

Value strip_tags(const Value& v, Args& args) {
  Bound("striptags", args, {});
  std::string text = str(v), out;
  Meter::current().string(text.size());
  size_t at = 0;
  for (size_t open = text.find('<'); open != text.npos; open = text.find('<', at)) {
    bool comment = text.compare(open, 4, "<!--") == 0;
    size_t close = comment ? text.find("-->", open + 4) : text.find('>', open);
    if (close == text.npos) break;
    out.append(text, at, open - at);
    at = close + (comment ? 3 : 1);
  }
  out.append(text, at);
  if (out.find('&') != out.npos) fail(kUnsupported, "the filter 'striptags' on text with HTML entities");
  std::string joined;
  Args none;
  Value words = str_method("split", Value::string(out), none);
  for (const Value& word : words.items()) joined += (joined.empty() ? "" : " ") + word.text();
  return Value::string(std::move(joined));
}

Value format(const Value& v, Args& args) {
  if (!args.positional.empty() && !args.named.empty())
    fail(kArgumentError, "can't handle positional and keyword arguments at the same time");
  if (args.named.empty()) return percent_format(soft(v), Value::tuple(args.positional));
  Ref<Dict> dict(new Dict);
  for (auto& [name, value] : args.named) dict->set(name, value);
  return percent_format(soft(v), Value::dict(dict));
}

Value url_encode(const Value& v, Args& args) {
  Bound("urlencode", args, {});
  auto quote = [](const Value& part, bool query) {
    std::string text = str(part), out;
    Meter::current().string(text.size() * 3);
    for (char c : text) {
      bool plain = is_alnum(static_cast<unsigned char>(c)) && static_cast<unsigned char>(c) < 0x80;
      if (plain || c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query)) {
        out += c;
      } else if (c == ' ' && query) {
        out += '+';
      } else {
        out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
      }
    }
    return out;
  };
  if (v.is(Kind::Str) || !is_iterable(v)) return Value::string(quote(v, false));
  Args none;
  std::vector<Value> pairs =
      v.is(Kind::Dict) ? to_list(call_value(get_attribute(v, "items"), none)) : to_list(v);
  std::string out;
  for (const Value& pair : pairs) {
    std::vector<Value> parts = to_list(pair);
    if (parts.size() != 2)
      fail(kValueError, "not enough values to unpack (expected 2, got {})", parts.size());
    out += (out.empty() ? "" : "&") + quote(parts[0], true) + "=" + quote(parts[1], true);
  }
  return Value::string(std::move(out));
}

Value xml_attributes(const Value& v, Args& args) {
  Bound bound("xmlattr", args, {"autospace"});
  if (v.is(Kind::Undefined)) fail_undefined(v);
  if (!v.is(Kind::Dict)) fail(kTypeError, "'{}' object has no attribute 'items'", type_name(v));
  std::string out;
  for (const auto& [key, value] : v.as_dict().items) {
    if (value.is(Kind::None) || value.is(Kind::Undefined)) continue;
    const std::string& name = text_of(key, "attribute name");
    if (name.find_first_of(" \t\n\r\f\v/>=") != name.npos)
      fail(kValueError, "Invalid character in attribute name: {}", quoted(name));
    out += (out.empty() ? "" : " ") + escape_html(key).text() + "=\"" + escape_html(value).text() + "\"";
  }
  if (!out.empty() && bound.flag(0, true)) out = " " + out;
  return Value::string(std::move(out));
}

Value file_size(const Value& v, Args& args) {
  Bound bound("filesizeformat", args, {"binary"});
  bool binary_units = bound.flag(0, false);
  double bytes;
  if (v.is(Kind::Str)) {
    auto parsed = parse_float(v.text());
    if (!parsed) fail(kValueError, "could not convert string to float: {}", repr(v));
    bytes = *parsed;
  } else if (v.is_number()) {
    bytes = v.as_float();
  } else {
    if (v.is(Kind::Undefined)) fail_undefined(v);
    fail(kTypeError, "float() argument must be a string or a real number, not '{}'", type_name(v));
  }
  double base = binary_units ? 1024 : 1000;
  if (bytes == 1) return Value::string("1 Byte");
  if (bytes < base) return Value::string(fmt::format("{} Bytes", static_cast<int64_t>(bytes)));
  constexpr const char* decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
  constexpr const char* powers[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
  double unit = base;
  for (int i = 0; i < 8; ++i) {
    unit *= base;
    if (bytes < unit || i == 7)
      return Value::string(float_digits(base * bytes / unit, 'f', 1, false) + " " +
                           (binary_units ? powers : decimal)[i]);
  }
  return {};
}

// ---------------------------------------------------------------------------------------------- numbers

std::optional<Int128> float_to_int(double d) {
  if (std::isnan(d)) return std::nullopt;
  if (std::isinf(d)) fail(kOverflowError, "cannot convert float infinity to integer");
  if (std::fabs(d) >= 1.7e38) fail(kUnsupported, "an integer of more than 127 bits");
  return static_cast<Int128>(d);
}

Value to_int(const Value& v, Args& args) {
  Bound bound("int", args, {"default", "base"});
  Value otherwise = bound.has(0) ? bound[0] : Value::integer(0);
  if (v.is(Kind::Undefined)) fail_undefined(v);
  if (v.is_integral()) return Value::integer(v.as_int());
  if (v.is(Kind::Float)) {
    auto i = float_to_int(v.as_float());
    return i ? Value::integer(*i) : otherwise;
  }
  if (!v.is(Kind::Str)) return otherwise;
  auto base = bound.integer(1, 10);
  if (base == 0 || (base >= 2 && base <= 36)) {
    if (auto i = parse_int(v.text(), static_cast<int>(base))) return Value::integer(*i);
  }
  auto d = parse_float(v.text());
  if (!d || !std::isfinite(*d)) return otherwise;
  return Value::integer(*float_to_int(*d));
}

Value to_float(const Value& v, Args& args) {
  Bound bound("float", args, {"default"});
  if (v.is(Kind::Undefined)) fail_undefined(v);
  if (v.is_number()) return Value::real(v.as_float());
  if (v.is(Kind::Str)) {
    if (auto d = parse_float(v.text())) return Value::real(*d);
  }
  return bound.has(0) ? bound[0] : Value::real(0);
}

Value absolute(const Value& v, Args& args) {
  Bound("abs", args, {});
  if (v.is_integral()) return v.as_int() < 0 ? unary(Op::Neg, v) : Value::integer(v.as_int());
  if (v.is(Kind::Float)) return Value::real(std::fabs(v.as_float()));
  fail(kTypeError, "bad operand type for abs(): '{}'", type_name(v));
}

// Half to even on the exact value, as Python rounds.
double round_float(double d, int64_t places) {
  if (!std::isfinite(d) || places > 323) return d;
  if (places < -308) return std::copysign(0.0, d);
  if (places >= 0) {
    std::string text = float_digits(d, 'f', static_cast<int>(places), false);
    return parse_float(text).value_or(d);
  }
  double unit = std::pow(10.0, static_cast<double>(-places));
  double scaled = d / unit, low = std::floor(scaled), rest = scaled - low;
  double rounded = rest < 0.5 ? low : rest > 0.5 ? low + 1 : (std::fmod(low, 2) == 0 ? low : low + 1);
  return rounded * unit;
}

Int128 round_int(Int128 i, int64_t places) {
  if (places >= 0) return i;
  if (places < -37) return 0;
  Int128 unit = 1;
  for (int64_t n = 0; n < -places; ++n) unit *= 10;
  Int128 low = i / unit * unit;
  if (low > i) low -= unit;
  Int128 rest = i - low;
  if (rest * 2 < unit) return low;
  if (rest * 2 > unit) return low + unit;
  return (low / unit) % 2 == 0 ? low : low + unit;
}

Value round(const Value& v, Args& args) {
  Bound bound("round", args, {"precision", "method"});
  std::string method = "common";
  if (bound.has(1)) method = bound[1].is(Kind::Str) ? bound[1].text() : "";
  if (method != "common" && method != "ceil" && method != "floor")
    fail(kArgumentError, "method must be common, ceil or floor");
  if (method == "common") {
    int64_t places = bound.integer(0, 0);
    if (v.is_integral()) return Value::integer(round_int(v.as_int(), places));
    if (v.is(Kind::Float)) return Value::real(round_float(v.as_float(), places));
    fail(kTypeError, "type {} doesn't define __round__ method", type_name(v));
  }
  Value precision = bound.has(0) ? bound[0] : Value::integer(0);
  Value scale = binary(Op::Pow, Value::integer(10), precision);
  Value scaled = binary(Op::Mul, v, scale);
  if (!scaled.is_number()) fail(kTypeError, "must be real number, not {}", type_name(scaled));
  if (scaled.is(Kind::Float)) {
    double d = method == "ceil" ? std::ceil(scaled.as_float()) : std::floor(scaled.as_float());
    auto i = float_to_int(d);
    if (!i) fail(kValueError, "cannot convert float NaN to integer");
    scaled = Value::integer(*i);
  }
  return binary(Op::Div, scaled, scale);
}

// ---------------------------------------------------------------------------------------------- the rest

Value default_value(const Value& v, Args& args) {
  Bound bound("default", args, {"default_value", "boolean"});
  if (v.is(Kind::Undefined) || (bound.flag(1, false) && !truth(v)))
    return bound.has(0) ? bound[0] : Value::string("");
  return v;
}

Value to_json(const Value& v, Args& args) {
  Bound bound("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = bound.flag(0, false);
  if (bound.has_value(1)) {
    if (bound[1].is(Kind::Str)) {
      style.indent = bound[1].text();
    } else {
      int64_t width = index_of(bound[1]);
      Meter::current().string(static_cast<uint64_t>(std::max<int64_t>(width, 0)));
      style.indent = std::string(static_cast<size_t>(std::max<int64_t>(width, 0)), ' ');
    }
    style.item_separator = ",";
  }
  if (bound.has_value(2)) {
    std::vector<Value> separators = to_list(bound[2]);
    if (separators.size() != 2) fail(kValueError, "separators must be two texts");
    style.item_separator = text_of(separators[0], "separator");
    style.key_separator = text_of(separators[1], "separator");
  }
  style.sort_keys = bound.flag(3, false);
  return Value::string(json_dumps(v, style));
}

Value attribute(const Value& v, Args& args) {
  Bound bound("attr", args, {"name"}, 1);
  const std::string& name = text_of(bound[0], "attribute name");
  if (v.is(Kind::Undefined)) return get_attribute(v, name);
  // An attribute, never a key.
  if (v.is(Kind::Dict) && !is_mutator(v, name) && find_attribute(v, name).is(Kind::Missing))
    return undefined_member(v, bound[0]);
  return get_attribute(v, name);
}

Value unsupported(const Value&, Args&) {
  fail(kUnsupported, "one of the filters pprint, random, urlize, wordwrap");
}

constexpr Entry<Filter> kFilters[] = {
    {"abs", absolute},
    {"attr", attribute},
    {"capitalize", capitalize},
    {"center", center},
    {"d", default_value},
    {"default", default_value},
    {"e", escape},
    {"escape", escape},
    {"filesizeformat", file_size},
    {"float", to_float},
    {"forceescape", force_escape},
    {"format", format},
    {"indent", indent},
    {"int", to_int},
    {"lower", lower},
    {"pprint", unsupported},
    {"random", unsupported},
    {"replace", replace},
    {"round", round},
    {"safe", safe},
    {"string", string},
    {"striptags", strip_tags},
    {"title", title},
    {"tojson", to_json},
    {"trim", trim},
    {"truncate", truncate},
    {"upper", upper},
    {"urlencode", url_encode},
    {"urlize", unsupported},
    {"wordcount", word_count},
    {"wordwrap", unsupported},
    {"xmlattr", xml_attributes},
};

}  // namespace

Filter find_text_filter(std::string_view name) { return find_entry(kFilters, name); }

Filter find_filter(std::string_view name) {
  Filter filter = find_text_filter(name);
  return filter ? filter : find_list_filter(name);
}

Value apply_filter(const Value& name, const Value& input, Args& args) {
  Filter filter = name.is(Kind::Str) ? find_filter(name.text()) : nullptr;
  if (!filter) fail(kRuntimeError, "No filter named {}.", repr(name));
  Meter::current().work(1);
  return filter(input, args);
}

}  // namespace cyb::jinja
