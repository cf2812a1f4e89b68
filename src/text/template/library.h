// SPDX-License-Identifier: Apache-2.0
// Filters, tests, methods and operators on values, by the names that templates know them under.
#pragma once

#include <ctime>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template/ast.h"
#include "text/template/value.h"

namespace cyb::jinja {

using Filter = Value (*)(const Value& input, Args& args);
using Test = bool (*)(const Value& input, Args& args);
using Method = Value (*)(const Value& self, Args& args);

template <class Fn>
struct Entry {
  std::string_view name;
  Fn fn;
};
template <class Fn, size_t N>
Fn find_entry(const Entry<Fn> (&table)[N], std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) return entry.fn;
  }
  return nullptr;
}

Filter find_filter(std::string_view name);
Filter find_text_filter(std::string_view name);
Filter find_list_filter(std::string_view name);
Test find_test(std::string_view name);
// By a name that is a value of the template; unknown names fail.
Value apply_filter(const Value& name, const Value& input, Args& args);
bool apply_test(const Value& name, const Value& input, Args& args);

Method find_str_method(std::string_view name);
// A bound method or attribute of a value, Missing when Python's type has none of that name.
Value find_attribute(const Value& self, std::string_view name);
// Does the sandbox refuse this method?
bool is_mutator(const Value& self, std::string_view name);

// obj.name and obj[key] as jinja2's sandbox resolves them.
Value get_attribute(const Value& object, std::string_view name);
Value get_item(const Value& object, const Value& key);
Value get_slice(const Value& object, const Value* start, const Value* stop, const Value* step);
Value call_value(const Value& callee, Args& args);

Value binary(Op op, const Value& a, const Value& b);
Value unary(Op op, const Value& v);
bool contains(const Value& container, const Value& item);
bool compare_op(Op op, const Value& a, const Value& b);

// `fmt % args`, str.format.
Value percent_format(const Value& format, const Value& arguments);
std::string str_format(const Value& format, const Args& args);
std::string format_value(const Value& v, std::string_view spec);

// "%.3f" and the like in the C locale: letter of e, f, g (or upper case), alternate keeps the point.
std::string float_digits(double d, char letter, int precision, bool alternate);

// range, dict, namespace, cycler, joiner, raise_exception, strftime_now; `now` for the last one.
std::vector<std::pair<std::string, Value>> global_functions(const std::optional<std::tm>& now);
Ref<Dict> make_dict(const char* function, const Args& args);

// Arguments by position or keyword. Fails as Python does for too many, missing or unknown ones.
class Bound {
 public:
  Bound(std::string_view function, Args& args, std::initializer_list<std::string_view> names,
        size_t required = 0);
  bool has(size_t i) const { return !values_[i].is(Kind::Missing); }
  const Value& operator[](size_t i) const { return values_[i]; }
  bool flag(size_t i, bool otherwise) const { return has(i) ? truth(values_[i]) : otherwise; }
  int64_t integer(size_t i, int64_t otherwise) const;
  bool has_value(size_t i) const { return has(i) && !values_[i].is(Kind::None); }

 private:
  std::vector<Value> values_;
};

void no_keywords(std::string_view function, const Args& args, size_t least, size_t most);
int64_t index_of(const Value& v);  // an integer argument; TypeError, OverflowError
const std::string& text_of(const Value& v, std::string_view what);

}  // namespace cyb::jinja
