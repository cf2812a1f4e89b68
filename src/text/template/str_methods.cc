// SPDX-License-Identifier: Apache-2.0
// The methods of Python's str. Positions count code points; Markup stays Markup.
#include "text/template/str_methods.h"

#include <algorithm>
#include <limits>

#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

// The part [start, end) that optional arguments select, and where it begins.
struct Part {
  std::string_view text;
  size_t before = 0;  // code points left of it
  bool valid = true;  // start within the string
};

Part part_of(const Value& self, const Args& args, size_t first) {
  const auto& s = self.as<Str>();
  auto n = static_cast<int64_t>(s.length());
  auto bound = [&](size_t i, int64_t otherwise) {
    if (i >= args.positional.size() || args.positional[i].is(Kind::None)) return otherwise;
    if (!args.positional[i].is_integral())
      fail(kTypeError, "slice indices must be integers or None or have an __index__ method");
    Int128 v = args.positional[i].as_int();
    if (v < 0) v += n;
    return static_cast<int64_t>(std::clamp<Int128>(v, 0, Int128(n) + 1));
  };
  int64_t start = bound(first, 0);
  int64_t end = std::min(bound(first + 1, n), n);
  if (start > n || start > end) return {{}, static_cast<size_t>(start), false};
  std::string_view text = s.text;
  size_t from = s.ascii() ? static_cast<size_t>(start) : byte_offset(text, static_cast<size_t>(start));
  size_t size = s.ascii() ? static_cast<size_t>(end - start)
                          : byte_offset(text.substr(from), static_cast<size_t>(end - start));
  return {text.substr(from, size), static_cast<size_t>(start), true};
}

// ---------------------------------------------------------------------------------------------- stripping

std::string_view strip_chars(std::string_view text, std::string_view chars, bool left, bool right) {
  std::u32string set;
  for (size_t at = 0; at < chars.size();) set += next_code_point(chars, at);
  std::sort(set.begin(), set.end());
  auto in_set = [&](char32_t c) { return std::binary_search(set.begin(), set.end(), c); };
  size_t from = 0, to = text.size();
  while (left && from < to) {
    size_t at = from;
    if (!in_set(next_code_point(text, at))) break;
    from = at;
  }
  while (right && to > from) {
    size_t at = to;
    if (!in_set(previous_code_point(text, at))) break;
    to = at;
  }
  return text.substr(from, to - from);
}

template <bool Left, bool Right>
Value strip(const Value& self, Args& args) {
  no_keywords("strip", args, 0, 1);
  std::string_view text = self_text(self);
  if (!args.positional.empty() && !args.positional[0].is(Kind::None)) {
    if (!args.positional[0].is(Kind::Str)) fail(kTypeError, "strip arg must be None or str");
    return like(self, strip_chars(text, args.positional[0].text(), Left, Right));
  }
  if (Left) text = strip_left(text);
  if (Right) text = strip_right(text);
  return like(self, text);
}

Value remove_prefix(const Value& self, Args& args) {
  no_keywords("removeprefix", args, 1, 1);
  std::string_view text = self_text(self);
  const std::string& prefix = text_of(args.positional[0], "removeprefix() argument");
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return like(self, text);
}

Value remove_suffix(const Value& self, Args& args) {
  no_keywords("removesuffix", args, 1, 1);
  std::string_view text = self_text(self);
  const std::string& suffix = text_of(args.positional[0], "removesuffix() argument");
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
  return like(self, text);
}

// ---------------------------------------------------------------------------------------------- searching

template <bool Start>
Value starts_or_ends(const Value& self, Args& args) {
  no_keywords(Start ? "startswith" : "endswith", args, 1, 3);
  Part part = part_of(self, args, 1);
  auto matches = [&](const Value& what) {
    if (!what.is(Kind::Str)) return false;
    return part.valid && (Start ? part.text.starts_with(what.text()) : part.text.ends_with(what.text()));
  };
  const Value& what = args.positional[0];
  if (what.is(Kind::Tuple)) {
    for (const Value& item : what.items()) {
      if (!item.is(Kind::Str)) {
        fail(kTypeError, "tuple for {} must only contain str, not {}", Start ? "startswith" : "endswith",
             type_name(item));
      }
      if (matches(item)) return Value::boolean(true);
    }
    return Value::boolean(false);
  }
  if (!what.is(Kind::Str)) {
    fail(kTypeError, "{} first arg must be str or a tuple of str, not {}", Start ? "startswith" : "endswith",
         type_name(what));
  }
  return Value::boolean(matches(what));
}

int64_t find_in(const Value& self, Args& args, const char* function, bool last) {
  no_keywords(function, args, 1, 3);
  const std::string& what = text_of(args.positional[0], "argument");
  Part part = part_of(self, args, 1);
  if (!part.valid) return -1;
  Meter::current().scan(part.text.size());
  size_t at = last ? part.text.rfind(what) : part.text.find(what);
  if (at == part.text.npos) return -1;
  return static_cast<int64_t>(part.before + count_code_points(part.text.substr(0, at)));
}

template <bool Last>
Value find(const Value& self, Args& args) {
  return Value::integer(find_in(self, args, Last ? "rfind" : "find", Last));
}

template <bool Last>
Value index(const Value& self, Args& args) {
  int64_t at = find_in(self, args, Last ? "rindex" : "index", Last);
  if (at < 0) fail(kValueError, "substring not found");
  return Value::integer(at);
}

Value count(const Value& self, Args& args) {
  no_keywords("count", args, 1, 3);
  const std::string& what = text_of(args.positional[0], "argument");
  Part part = part_of(self, args, 1);
  if (!part.valid) return Value::integer(0);
  Meter::current().scan(part.text.size());
  if (what.empty()) return Value::integer(static_cast<int64_t>(count_code_points(part.text)) + 1);
  int64_t n = 0;
  for (size_t at = part.text.find(what); at != part.text.npos; at = part.text.find(what, at + what.size()))
    ++n;
  return Value::integer(n);
}

// -------------------------------------------------------------------------------------- splitting, joining

std::vector<std::string_view> split_space(std::string_view text, int64_t most, bool from_right) {
  std::vector<std::string_view> parts;
  text = from_right ? strip_right(text) : strip_left(text);
  while (!text.empty()) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(from_right ? strip_right(text) : text);
      break;
    }
    size_t edge = from_right ? text.size() : 0;
    while (from_right ? edge > 0 : edge < text.size()) {
      size_t at = edge;
      if (is_space(from_right ? previous_code_point(text, at) : next_code_point(text, at))) break;
      edge = at;
    }
    parts.push_back(from_right ? text.substr(edge) : text.substr(0, edge));
    text = from_right ? strip_right(text.substr(0, edge)) : strip_left(text.substr(edge));
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, int64_t most,
                                       bool from_right) {
  std::vector<std::string_view> parts;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == text.npos) break;
    if (from_right) {
      parts.push_back(text.substr(at + separator.size()));
      text = text.substr(0, at);
    } else {
      parts.push_back(text.substr(0, at));
      text = text.substr(at + separator.size());
    }
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

Value texts(const Value& self, const std::vector<std::string_view>& parts, bool tuple = false) {
  Meter::current().items(parts.size());
  std::vector<Value> out;
  out.reserve(parts.size());
  for (std::string_view part : parts) out.push_back(like(self, part));
  return tuple ? Value::tuple(std::move(out)) : Value::list(std::move(out));
}

template <bool FromRight>
Value split(const Value& self, Args& args) {
  Bound bound(FromRight ? "rsplit" : "split", args, {"sep", "maxsplit"});
  std::string_view text = self_text(self);
  int64_t most = bound.integer(1, -1);
  if (!bound.has_value(0)) return texts(self, split_space(text, most, FromRight));
  const std::string& separator = text_of(bound[0], "separator");
  if (separator.empty()) fail(kValueError, "empty separator");
  return texts(self, split_at(text, separator, most, FromRight));
}

Value split_lines(const Value& self, Args& args) {
  Bound bound("splitlines", args, {"keepends"});
  bool keep = bound.flag(0, false);
  std::string_view text = self_text(self);
  std::vector<std::string_view> lines;
  size_t start = 0;
  for (size_t at = 0; at < text.size();) {
    if (size_t end = line_end_at(text, at)) {
      lines.push_back(text.substr(start, at - start + (keep ? end : 0)));
      at += end;
      start = at;
    } else {
      next_code_point(text, at);
    }
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return texts(self, lines);
}

template <bool Last>
Value partition(const Value& self, Args& args) {
  no_keywords("partition", args, 1, 1);
  const std::string& separator = text_of(args.positional[0], "separator");
  if (separator.empty()) fail(kValueError, "empty separator");
  std::string_view text = self_text(self);
  size_t at = Last ? text.rfind(separator) : text.find(separator);
  if (at == text.npos) return Last ? texts(self, {"", "", text}, true) : texts(self, {text, "", ""}, true);
  return texts(self, {text.substr(0, at), separator, text.substr(at + separator.size())}, true);
}

Value join(const Value& self, Args& args) {
  no_keywords("join", args, 1, 1);
  std::vector<Value> items = to_list(args.positional[0]);
  std::string out;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string piece;
    if (self.is_safe()) {
      piece = escape_html(items[i]).text();
    } else {
      if (!items[i].is(Kind::Str))
        fail(kTypeError, "sequence item {}: expected str instance, {} found", i, type_name(items[i]));
      piece = items[i].text();
    }
    Meter::current().string(out.size() + self.text().size() + piece.size());
    if (i > 0) out += self.text();
    out += piece;
  }
  return like(self, std::move(out));
}

Value replace(const Value& self, Args& args) {
  no_keywords("replace", args, 2, 3);
  std::string_view text = self_text(self);
  const std::string& from = text_of(args.positional[0], "replace() argument 1");
  std::string to = text_of(args.positional[1], "replace() argument 2");
  if (self.is_safe() && !args.positional[1].is_safe()) to = escape_html(std::string_view(to));
  int64_t most = args.positional.size() > 2 ? index_of(args.positional[2]) : -1;
  if (most < 0) most = std::numeric_limits<int64_t>::max();
  std::string out;
  auto add = [&](std::string_view piece) {
    if (out.size() + piece.size() > (1u << 16)) Meter::current().string(out.size() + piece.size());
    out += piece;
  };
  if (from.empty()) {
    for (size_t at = 0; at < text.size();) {
      if (most-- > 0) add(to);
      size_t start = at;
      next_code_point(text, at);
      add(text.substr(start, at - start));
    }
    if (most > 0) add(to);
    return like(self, std::move(out));
  }
  size_t at = 0;
  for (size_t found = text.find(from); found != text.npos && most > 0; --most, found = text.find(from, at)) {
    add(text.substr(at, found - at));
    add(to);
    at = found + from.size();
  }
  add(text.substr(at));
  return like(self, std::move(out));
}

// ---------------------------------------------------------------------------------------------- padding

Value pad(const Value& self, Args& args, const char* function, int where) {
  no_keywords(function, args, 1, 2);
  int64_t width = index_of(args.positional[0]);
  std::string fill = " ";
  if (args.positional.size() > 1) {
    if (!args.positional[1].is(Kind::Str) || args.positional[1].as<Str>().length() != 1) {
      fail(kTypeError, "The fill character must be exactly one character long");
    }
    fill = args.positional[1].text();
    if (self.is_safe() && !args.positional[1].is_safe()) fill = escape_html(std::string_view(fill));
  }
  auto length = static_cast<int64_t>(self.as<Str>().length());
  if (width <= length) return like(self, std::string_view(self.text()));
  int64_t space = width - length;
  int64_t left = where < 0 ? 0 : where > 0 ? space : space / 2 + (space & width & 1);
  Meter::current().string(static_cast<uint64_t>(space) > (1ull << 50)
                              ? 1ull << 50
                              : static_cast<uint64_t>(space) * fill.size() + self.text().size());
  std::string out;
  for (int64_t i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (int64_t i = left; i < space; ++i) out += fill;
  return like(self, std::move(out));
}

Value center(const Value& self, Args& args) { return pad(self, args, "center", 0); }
Value left_justified(const Value& self, Args& args) { return pad(self, args, "ljust", -1); }
Value right_justified(const Value& self, Args& args) { return pad(self, args, "rjust", 1); }

Value zero_filled(const Value& self, Args& args) {
  no_keywords("zfill", args, 1, 1);
  int64_t width = index_of(args.positional[0]);
  auto length = static_cast<int64_t>(self.as<Str>().length());
  if (width <= length) return like(self, std::string_view(self.text()));
  Meter::current().string(static_cast<uint64_t>(width));
  const std::string& text = self.text();
  size_t sign = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  return like(
      self, text.substr(0, sign) + std::string(static_cast<size_t>(width - length), '0') + text.substr(sign));
}

Value expand_tabs(const Value& self, Args& args) {
  Bound bound("expandtabs", args, {"tabsize"});
  int64_t size = bound.integer(0, 8);
  std::string out;
  int64_t column = 0;
  const std::string& text = self_text(self);
  for (size_t at = 0; at < text.size();) {
    size_t start = at;
    char32_t c = next_code_point(text, at);
    if (c == '\t') {
      int64_t spaces = size > 0 ? size - column % size : 0;
      Meter::current().string(out.size() + static_cast<uint64_t>(spaces));
      out.append(static_cast<size_t>(spaces), ' ');
      column += spaces;
    } else {
      out.append(text, start, at - start);
      column = c == '\n' || c == '\r' ? 0 : column + 1;
    }
  }
  return like(self, std::move(out));
}

// ---------------------------------------------------------------------------------------------- formatting

Value format(const Value& self, Args& args) { return like(self, str_format(self, args)); }

Value format_map(const Value& self, Args& args) {
  no_keywords("format_map", args, 1, 1);
  Args inner;
  const Value& mapping = args.positional[0];
  if (!mapping.is(Kind::Dict))
    fail(kTypeError, "format_map() argument must be a dict, not {}", type_name(mapping));
  for (const auto& [key, value] : mapping.as_dict().items) {
    if (key.is(Kind::Str)) inner.named.emplace_back(key.text(), value);
  }
  return like(self, str_format(self, inner));
}

Value strip_tags(const Value& self, Args& args) {
  if (!self.is_safe()) fail(kTypeError, "striptags() needs Markup");
  Filter filter = find_filter("striptags");
  return filter(self, args);
}

Value unsupported(const Value&, Args&) { fail(kUnsupported, "str.encode, str.translate and str.maketrans"); }

constexpr Entry<Method> kMethods[] = {
    {"center", center},
    {"count", count},
    {"encode", unsupported},
    {"endswith", starts_or_ends<false>},
    {"expandtabs", expand_tabs},
    {"find", find<false>},
    {"format", format},
    {"format_map", format_map},
    {"index", index<false>},
    {"join", join},
    {"ljust", left_justified},
    {"lstrip", strip<true, false>},
    {"maketrans", unsupported},
    {"partition", partition<false>},
    {"removeprefix", remove_prefix},
    {"removesuffix", remove_suffix},
    {"replace", replace},
    {"rfind", find<true>},
    {"rindex", index<true>},
    {"rjust", right_justified},
    {"rpartition", partition<true>},
    {"rsplit", split<true>},
    {"rstrip", strip<false, true>},
    {"split", split<false>},
    {"splitlines", split_lines},
    {"startswith", starts_or_ends<true>},
    {"strip", strip<true, true>},
    {"translate", unsupported},
    {"zfill", zero_filled},
};

}  // namespace

Method find_str_method(std::string_view name) {
  if (name == "striptags") return strip_tags;
  const Method method = find_entry(kMethods, name);
  return method ? method : find_str_character_method(name);
}

}  // namespace cyb::jinja
