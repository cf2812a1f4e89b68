// SPDX-License-Identifier: Apache-2.0
// Equality, order and hashes of values, as Python has them.
#include <algorithm>
#include <cmath>

#include "text/template/value.h"

namespace cyb::jinja {
namespace {

// An integer against a double, exactly: -1, 0, 1, or 2 for unordered.
int compare_int_float(Int128 i, double d) {
  if (std::isnan(d)) return 2;
  constexpr double limit = 170141183460469231731687303715884105728.0;  // 2^127
  if (d >= limit) return -1;
  if (d < -limit) return 1;
  double whole = std::floor(d);
  auto w = static_cast<Int128>(whole);
  if (i != w) return i < w ? -1 : 1;
  return whole < d ? -1 : 0;
}

int compare_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) return a.as_int() < b.as_int() ? -1 : a.as_int() > b.as_int();
  if (a.is_integral()) return compare_int_float(a.as_int(), b.as_float());
  if (b.is_integral()) {
    int c = compare_int_float(b.as_int(), a.as_float());
    return c == 2 ? 2 : -c;
  }
  double x = a.as_float(), y = b.as_float();
  if (std::isnan(x) || std::isnan(y)) return 2;
  return x < y ? -1 : x > y;
}

bool equal_sequences(const std::vector<Value>& a, const std::vector<Value>& b) {
  if (a.size() != b.size()) return false;
  Depth depth;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_object(a[i], b[i]) && !equals(a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  Depth depth;
  for (const auto& [key, value] : a.items) {
    const Value* other = b.find(key);
    if (!other || (!same_object(value, *other) && !equals(value, *other))) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  int64_t n = a.size();
  if (n != b.size()) return false;
  return n == 0 || (a.start == b.start && (n == 1 || a.step == b.step));
}

bool is_set_like(const Value& v) { return v.is(Kind::DictView) && v.as<DictView>().part != DictView::Values; }

bool equal_views(const DictView& a, const DictView& b) {
  if (a.dict->items.size() != b.dict->items.size() || a.part != b.part)
    return a.dict->items.empty() && b.dict->items.empty();
  if (a.part == DictView::Items) return equal_dicts(*a.dict, *b.dict);
  for (const auto& [key, value] : a.dict->items) {
    if (!b.dict->find(key)) return false;
  }
  return true;
}

bool equal_methods(const Function& a, const Function& b) {
  if (a.self.is(Kind::Missing) || a.name != b.name) return false;
  if (a.self.is(Kind::Str)) return b.self.is(Kind::Str) && a.self.text() == b.self.text();
  return same_object(a.self, b.self);
}

}  // namespace

bool same_object(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.object()) return a.object() == b.object();
  if (a.is(Kind::Float)) return a.as_float() == b.as_float();
  return a.is(Kind::None) || a.as_int() == b.as_int();
}

bool equals(const Value& a, const Value& b) {
  Meter::current().work(1);
  if (a.is_number() && b.is_number()) return compare_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None:
      return true;
    case Kind::Str:
      if (a.text().size() != b.text().size()) return false;
      Meter::current().scan(a.text().size());
      return a.text() == b.text();
    case Kind::List:
    case Kind::Tuple:
      return equal_sequences(a.items(), b.items());
    case Kind::Dict:
      return equal_dicts(a.as_dict(), b.as_dict());
    case Kind::Range:
      return equal_ranges(a.as<Range>(), b.as<Range>());
    case Kind::DictView:
      return is_set_like(a) && is_set_like(b) ? equal_views(a.as<DictView>(), b.as<DictView>())
                                              : a.object() == b.object();
    case Kind::Function:
      return a.object() == b.object() || equal_methods(a.as<Function>(), b.as<Function>());
    default:
      return a.object() == b.object();
  }
}

size_t hash_of(std::string_view text) {
  Meter::current().scan(text.size());
  return std::hash<std::string_view>()(text);
}

size_t hash_of(const Value& v) {
  auto of_int = [](Int128 i) {
    return std::hash<uint64_t>()(static_cast<uint64_t>(i) ^
                                 static_cast<uint64_t>(i >> 64) * 0x9E3779B97F4A7C15u);
  };
  switch (v.kind()) {
    case Kind::Bool:
    case Kind::Int:
      return of_int(v.as_int());
    case Kind::Float: {
      double d = v.as_float();
      if (std::floor(d) == d && std::fabs(d) < 1e38) return of_int(static_cast<Int128>(d));
      return std::hash<double>()(d);
    }
    case Kind::Str:
      return hash_of(std::string_view(v.text()));
    case Kind::Tuple: {
      Depth depth;
      size_t h = 0x345678;
      for (const Value& item : v.items()) h = (h ^ hash_of(item)) * 1000003;
      return h;
    }
    case Kind::Range:
      return static_cast<size_t>(v.as<Range>().size()) * 31 + 7;
    case Kind::List:
    case Kind::Dict:
    case Kind::DictView:
      if (v.is(Kind::DictView) && v.as<DictView>().part == DictView::Values) break;
      fail(kTypeError, "unhashable type: '{}'", type_name(v));
    case Kind::Function:
      return hash_of(std::string_view(v.as<Function>().name));
    default:
      break;
  }
  return v.is(Kind::Undefined) || !v.object() ? static_cast<size_t>(v.kind())
                                              : std::hash<Object*>()(v.object());
}

bool compare(const Value& a, Order order, const Value& b) {
  Meter::current().work(1);
  if (a.is(Kind::Undefined)) fail_undefined(a);
  if (b.is(Kind::Undefined)) fail_undefined(b);
  auto decide = [&](int c) {
    switch (order) {
      case Order::Less:
        return c < 0;
      case Order::LessEqual:
        return c <= 0;
      case Order::Greater:
        return c > 0 && c != 2;
      default:
        return c >= 0 && c != 2;
    }
  };
  if (a.is_number() && b.is_number()) {
    int c = compare_numbers(a, b);
    return c != 2 && decide(c);
  }
  if (a.is(Kind::Str) && b.is(Kind::Str)) {
    Meter::current().scan(std::min(a.text().size(), b.text().size()));
    int c = a.text().compare(b.text());  // UTF-8 keeps the order of code points
    return decide(c < 0 ? -1 : c > 0);
  }
  if (a.is_sequence() && a.kind() == b.kind()) {
    Depth depth;
    const auto &x = a.items(), &y = b.items();
    size_t common = std::min(x.size(), y.size());
    for (size_t i = 0; i < common; ++i) {
      if (!same_object(x[i], y[i]) && !equals(x[i], y[i])) return compare(x[i], order, y[i]);
    }
    return decide(x.size() < y.size() ? -1 : x.size() > y.size());
  }
  constexpr const char* signs[] = {"<", "<=", ">", ">="};
  fail(kTypeError, "'{}' not supported between instances of '{}' and '{}'", signs[static_cast<int>(order)],
       type_name(a), type_name(b));
}

}  // namespace cyb::jinja
