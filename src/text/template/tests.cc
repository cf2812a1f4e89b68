// SPDX-License-Identifier: Apache-2.0
// The tests of `is`, by name.
#include <cmath>

#include "text/template/library.h"
#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

const Value& other(Args& args, const char* name) {
  if (args.positional.size() + args.named.size() != 1) {
    fail(kTypeError, "{}() takes 2 arguments ({} given)", name,
         1 + args.positional.size() + args.named.size());
  }
  return args.positional.empty() ? args.named[0].second : args.positional[0];
}

void alone(Args& args, const char* name) {
  if (!args.positional.empty() || !args.named.empty()) {
    fail(kTypeError, "{}() takes 1 positional argument but {} were given", name,
         1 + args.positional.size() + args.named.size());
  }
}

template <Op op>
bool compared(const Value& v, Args& args) {
  return compare_op(op, v, other(args, "comparison"));
}

template <Kind kind>
bool of_kind(const Value& v, Args& args) {
  alone(args, "test");
  return v.is(kind);
}

bool remainder_is(const Value& v, const Value& divisor, int64_t rest) {
  return equals(binary(Op::Mod, v, divisor), Value::integer(rest));
}

bool odd(const Value& v, Args& args) {
  alone(args, "test_odd");
  return remainder_is(v, Value::integer(2), 1);
}
bool even(const Value& v, Args& args) {
  alone(args, "test_even");
  return remainder_is(v, Value::integer(2), 0);
}
bool divisible_by(const Value& v, Args& args) { return remainder_is(v, other(args, "test_divisibleby"), 0); }

bool defined(const Value& v, Args& args) {
  alone(args, "test_defined");
  return !v.is(Kind::Undefined);
}
bool is_true(const Value& v, Args& args) {
  alone(args, "test_true");
  return v.is(Kind::Bool) && v.truth_of_bool();
}
bool is_false(const Value& v, Args& args) {
  alone(args, "test_false");
  return v.is(Kind::Bool) && !v.truth_of_bool();
}
bool number(const Value& v, Args& args) {
  alone(args, "test_number");
  return v.is_number();
}
bool sequence(const Value& v, Args& args) {
  alone(args, "test_sequence");
  return v.is(Kind::Undefined) || v.is(Kind::Str) || v.is_sequence() || v.is(Kind::Dict) || v.is(Kind::Range);
}
bool iterable(const Value& v, Args& args) {
  alone(args, "test_iterable");
  return is_iterable(v);
}
bool callable(const Value& v, Args& args) {
  alone(args, "callable");
  return is_callable(v);
}
bool same_as(const Value& v, Args& args) {
  const Value& o = other(args, "test_sameas");
  if (v.is(Kind::Str) && o.is(Kind::Str)) return v.text() == o.text();
  if (v.is(Kind::Undefined) || v.object()) return v.kind() == o.kind() && v.object() == o.object();
  return same_object(v, o);
}
bool escaped(const Value& v, Args& args) {
  alone(args, "test_escaped");
  return v.is_safe();
}
bool in(const Value& v, Args& args) { return contains(other(args, "test_in"), v); }
bool lower(const Value& v, Args& args) {
  alone(args, "test_lower");
  Args none;
  return truth(find_str_method("islower")(Value::string(str(v)), none));
}
bool upper(const Value& v, Args& args) {
  alone(args, "test_upper");
  Args none;
  return truth(find_str_method("isupper")(Value::string(str(v)), none));
}
bool is_filter(const Value& v, Args& args) {
  alone(args, "test_filter");
  hash_of(v);  // fails where Python's dict would
  return v.is(Kind::Str) && find_filter(v.text());
}
bool is_test(const Value& v, Args& args) {
  alone(args, "test_test");
  hash_of(v);
  return v.is(Kind::Str) && find_test(v.text());
}

constexpr Entry<Test> kTests[] = {
    {"!=", compared<Op::Ne>},
    {"<", compared<Op::Lt>},
    {"<=", compared<Op::LtEq>},
    {"==", compared<Op::Eq>},
    {">", compared<Op::Gt>},
    {">=", compared<Op::GtEq>},
    {"boolean", of_kind<Kind::Bool>},
    {"callable", callable},
    {"defined", defined},
    {"divisibleby", divisible_by},
    {"eq", compared<Op::Eq>},
    {"equalto", compared<Op::Eq>},
    {"escaped", escaped},
    {"even", even},
    {"false", is_false},
    {"filter", is_filter},
    {"float", of_kind<Kind::Float>},
    {"ge", compared<Op::GtEq>},
    {"greaterthan", compared<Op::Gt>},
    {"gt", compared<Op::Gt>},
    {"in", in},
    {"integer", of_kind<Kind::Int>},
    {"iterable", iterable},
    {"le", compared<Op::LtEq>},
    {"lessthan", compared<Op::Lt>},
    {"lower", lower},
    {"lt", compared<Op::Lt>},
    {"mapping", of_kind<Kind::Dict>},
    {"ne", compared<Op::Ne>},
    {"none", of_kind<Kind::None>},
    {"number", number},
    {"odd", odd},
    {"sameas", same_as},
    {"sequence", sequence},
    {"string", of_kind<Kind::Str>},
    {"test", is_test},
    {"true", is_true},
    {"undefined", of_kind<Kind::Undefined>},
    {"upper", upper},
};

}  // namespace

Test find_test(std::string_view name) { return find_entry(kTests, name); }

bool apply_test(const Value& name, const Value& input, Args& args) {
  Test test = name.is(Kind::Str) ? find_test(name.text()) : nullptr;
  if (!test) fail(kRuntimeError, "No test named {}.", repr(name));
  Meter::current().work(1);
  return test(input, args);
}

}  // namespace cyb::jinja
