// SPDX-License-Identifier: Apache-2.0
// Values as Python writes them: str(), repr(), json.dumps, float digits, and numbers read from text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/template/value.h"

namespace cyb::jinja {

std::string str(const Value& v);
std::string repr(const Value& v);
std::string quoted(std::string_view text);         // repr of a str
std::string ascii_escaped(std::string_view text);  // what ascii() does to a repr
std::string int_text(Int128 i);
std::string int_text(Int128 i, unsigned base, bool upper = false);  // without sign or prefix
std::string float_repr(double d);

// int(text, base) and float(text); nothing where Python raises ValueError.
std::optional<Int128> parse_int(std::string_view text, int base = 10);
std::optional<double> parse_float(std::string_view text);

Value escape_html(const Value& v);  // markupsafe.escape
std::string escape_html(std::string_view text);

struct JsonStyle {
  bool ascii = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
std::string json_dumps(const Value& v, const JsonStyle& style);

}  // namespace cyb::jinja
