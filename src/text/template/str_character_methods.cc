// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str that go by the kind of each character: conversions of case, is…().
#include "text/template/python_text.h"
#include "text/template/str_methods.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

template <std::string (*Convert)(std::string_view)>
Value converted(const Value& self, Args& args) {
  no_keywords("str", args, 0, 0);
  return like(self, Convert(self_text(self)));
}

template <bool (*Is)(char32_t)>
Value all_are(const Value& self, Args& args) {
  no_keywords("str", args, 0, 0);
  const std::string& text = self_text(self);
  for (size_t at = 0; at < text.size();) {
    if (!Is(next_code_point(text, at))) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

Value is_ascii_text(const Value& self, Args& args) {
  no_keywords("isascii", args, 0, 0);
  return Value::boolean(is_ascii(self_text(self)));
}

Value is_printable_text(const Value& self, Args& args) {
  no_keywords("isprintable", args, 0, 0);
  const std::string& text = self_text(self);
  for (size_t at = 0; at < text.size();) {
    if (!is_printable(next_code_point(text, at))) return Value::boolean(false);
  }
  return Value::boolean(true);
}

Value is_identifier_text(const Value& self, Args& args) {
  no_keywords("isidentifier", args, 0, 0);
  const std::string& text = self_text(self);
  for (size_t at = 0; at < text.size();) {
    bool first = at == 0;
    char32_t c = next_code_point(text, at);
    if (first ? !is_identifier_start(c) : !is_identifier_part(c)) return Value::boolean(false);
  }
  return Value::boolean(!text.empty());
}

template <bool Lower>
Value is_case(const Value& self, Args& args) {
  no_keywords(Lower ? "islower" : "isupper", args, 0, 0);
  const std::string& text = self_text(self);
  bool any = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (is_title(c) || (Lower ? is_upper(c) : is_lower(c))) return Value::boolean(false);
    any = any || (Lower ? is_lower(c) : is_upper(c));
  }
  return Value::boolean(any);
}

Value is_title_text(const Value& self, Args& args) {
  no_keywords("istitle", args, 0, 0);
  const std::string& text = self_text(self);
  bool any = false, inside = false;
  for (size_t at = 0; at < text.size();) {
    char32_t c = next_code_point(text, at);
    if (is_upper(c) || is_title(c)) {
      if (inside) return Value::boolean(false);
      inside = any = true;
    } else if (is_lower(c)) {
      if (!inside) return Value::boolean(false);
      inside = any = true;
    } else {
      inside = false;
    }
  }
  return Value::boolean(any);
}

constexpr Entry<Method> kMethods[] = {
    {"capitalize", converted<to_capitalized>},
    {"casefold", converted<to_casefold>},
    {"isalnum", all_are<is_alnum>},
    {"isalpha", all_are<is_alpha>},
    {"isascii", is_ascii_text},
    {"isdecimal", all_are<is_decimal>},
    {"isdigit", all_are<is_digit>},
    {"isidentifier", is_identifier_text},
    {"islower", is_case<true>},
    {"isnumeric", all_are<is_numeric>},
    {"isprintable", is_printable_text},
    {"isspace", all_are<is_space>},
    {"istitle", is_title_text},
    {"isupper", is_case<false>},
    {"lower", converted<to_lower>},
    {"swapcase", converted<to_swapped_case>},
    {"title", converted<to_title>},
    {"upper", converted<to_upper>},
};

}  // namespace

Method find_str_character_method(std::string_view name) { return find_entry(kMethods, name); }

}  // namespace cyb::jinja
