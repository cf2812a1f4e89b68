// SPDX-License-Identifier: Apache-2.0
// Python's operators.
#include <algorithm>
#include <cmath>

#include "text/template/library.h"
#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

const char* sign(Op op) {
  switch (op) {
    case Op::Add:
      return "+";
    case Op::Sub:
      return "-";
    case Op::Mul:
      return "*";
    case Op::Div:
      return "/";
    case Op::FloorDiv:
      return "//";
    case Op::Mod:
      return "%";
    default:
      return "** or pow()";
  }
}

[[noreturn]] void too_large() { fail(kUnsupported, "an integer of more than 127 bits"); }

Int128 floor_div(Int128 a, Int128 b) {
  Int128 q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

double float_mod(double a, double b) {
  double m = std::fmod(a, b);
  if (m != 0) {
    if ((b < 0) != (m < 0)) m += b;
  } else {
    m = std::copysign(0.0, b);
  }
  return m;
}

double float_floor_div(double a, double b) {
  double m = std::fmod(a, b);
  double div = (a - m) / b;
  if (m != 0 && (b < 0) != (m < 0)) div -= 1.0;
  if (div == 0) return std::copysign(0.0, a / b);
  double floored = std::floor(div);
  return div - floored > 0.5 ? floored + 1.0 : floored;
}

double true_division(Int128 a, Int128 b) {
  constexpr Int128 exact = Int128(1) << 53;
  if (a <= exact && a >= -exact && b <= exact && b >= -exact)
    return static_cast<double>(a) / static_cast<double>(b);
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

Int128 int_power(Int128 base, Int128 exponent) {
  Int128 result = 1;
  while (exponent > 0) {
    if (exponent & 1) {
      if (__builtin_mul_overflow(result, base, &result)) too_large();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_large();
  }
  return result;
}

Value int_op(Op op, Int128 a, Int128 b) {
  Int128 r;
  switch (op) {
    case Op::Add:
      if (__builtin_add_overflow(a, b, &r)) too_large();
      return Value::integer(r);
    case Op::Sub:
      if (__builtin_sub_overflow(a, b, &r)) too_large();
      return Value::integer(r);
    case Op::Mul:
      if (__builtin_mul_overflow(a, b, &r)) too_large();
      return Value::integer(r);
    case Op::Div:
      if (b == 0) fail(kZeroDivision, "division by zero");
      return Value::real(true_division(a, b));
    case Op::FloorDiv:
      if (b == 0) fail(kZeroDivision, "integer division or modulo by zero");
      if (b == -1) return int_op(Op::Sub, 0, a);
      return Value::integer(floor_div(a, b));
    case Op::Mod:
      if (b == 0) fail(kZeroDivision, "integer modulo by zero");
      if (b == -1) return Value::integer(0);
      return Value::integer(a - floor_div(a, b) * b);
    default:
      if (b < 0) {
        if (a == 0) fail(kZeroDivision, "0.0 cannot be raised to a negative power");
        return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
      }
      return Value::integer(int_power(a, b));
  }
}

Value float_op(Op op, double a, double b) {
  switch (op) {
    case Op::Add:
      return Value::real(a + b);
    case Op::Sub:
      return Value::real(a - b);
    case Op::Mul:
      return Value::real(a * b);
    case Op::Div:
      if (b == 0) fail(kZeroDivision, "float division by zero");
      return Value::real(a / b);
    case Op::FloorDiv:
      if (b == 0) fail(kZeroDivision, "float floor division by zero");
      return Value::real(float_floor_div(a, b));
    case Op::Mod:
      if (b == 0) fail(kZeroDivision, "float modulo");
      return Value::real(float_mod(a, b));
    default: {
      if (a == 0 && b < 0) fail(kZeroDivision, "0.0 cannot be raised to a negative power");
      if (a < 0 && std::isfinite(a) && std::isfinite(b) && std::floor(b) != b)
        fail(kUnsupported, "a complex number");
      double r = std::pow(a, b);
      if (std::isinf(r) && std::isfinite(a) && std::isfinite(b))
        fail(kOverflowError, "(34, 'Numerical result out of range')");
      return Value::real(r);
    }
  }
}

Value add_text(const Value& a, const Value& b) {
  bool safe = a.is_safe() || b.is_safe();
  std::string left = safe && !a.is_safe() ? escape_html(std::string_view(a.text())) : a.text();
  Meter::current().string(left.size() + b.text().size());
  left += safe && !b.is_safe() ? escape_html(std::string_view(b.text())) : b.text();
  return Value::string(std::move(left), safe);
}

Value add_items(const Value& a, const Value& b) {
  Meter::current().items(a.items().size() + b.items().size());
  std::vector<Value> items = a.items();
  items.insert(items.end(), b.items().begin(), b.items().end());
  return a.is(Kind::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

Value repeat(const Value& v, Int128 count) {
  if (count < 0) count = 0;
  if (v.is(Kind::Str)) {
    const std::string& text = v.text();
    if (text.empty()) count = 0;
    if (count > Int128(1) << 62) count = Int128(1) << 40;
    auto n = static_cast<uint64_t>(count);
    uint64_t size;
    if (__builtin_mul_overflow(n, static_cast<uint64_t>(text.size()), &size)) size = UINT64_MAX;
    Meter::current().string(size);
    std::string out;
    out.reserve(size);
    for (uint64_t i = 0; i < n; ++i) out += text;
    return Value::string(std::move(out), v.is_safe());
  }
  const auto& source = v.items();
  if (source.empty()) count = 0;
  uint64_t size;
  if (count > Int128(1) << 62 ||
      __builtin_mul_overflow(static_cast<uint64_t>(count), static_cast<uint64_t>(source.size()), &size))
    size = UINT64_MAX;
  Meter::current().items(size);
  std::vector<Value> items;
  items.reserve(size);
  for (uint64_t i = 0; i < size; ++i) items.push_back(source[i % source.size()]);
  return v.is(Kind::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
}

bool repeatable(const Value& v) { return v.is(Kind::Str) || v.is_sequence(); }

}  // namespace

Value binary(Op op, const Value& a, const Value& b) {
  Meter::current().work(1);
  if (op == Op::Mod && a.is(Kind::Str)) return percent_format(a, b);
  if (a.is(Kind::Undefined)) fail_undefined(a);
  if (b.is(Kind::Undefined)) fail_undefined(b);
  if (a.is_integral() && b.is_integral()) return int_op(op, a.as_int(), b.as_int());
  if (a.is_number() && b.is_number()) return float_op(op, a.as_float(), b.as_float());
  if (op == Op::Add) {
    if (a.is(Kind::Str)) {
      if (b.is(Kind::Str)) return add_text(a, b);
      fail(kTypeError, "can only concatenate str (not \"{}\") to str", type_name(b));
    }
    if (a.is_sequence()) {
      if (a.kind() == b.kind()) return add_items(a, b);
      fail(kTypeError, "can only concatenate {} (not \"{}\") to {}", type_name(a), type_name(b),
           type_name(a));
    }
  }
  if (op == Op::Mul) {
    if (repeatable(a) && b.is_integral()) return repeat(a, b.as_int());
    if (repeatable(b) && a.is_integral()) return repeat(b, a.as_int());
    if (repeatable(a)) fail(kTypeError, "can't multiply sequence by non-int of type '{}'", type_name(b));
    if (repeatable(b)) fail(kTypeError, "can't multiply sequence by non-int of type '{}'", type_name(a));
  }
  fail(kTypeError, "unsupported operand type(s) for {}: '{}' and '{}'", sign(op), type_name(a), type_name(b));
}

Value unary(Op op, const Value& v) {
  if (v.is(Kind::Undefined)) fail_undefined(v);
  if (v.is_integral()) return op == Op::Neg ? int_op(Op::Sub, 0, v.as_int()) : Value::integer(v.as_int());
  if (v.is(Kind::Float)) return Value::real(op == Op::Neg ? -v.as_float() : v.as_float());
  fail(kTypeError, "bad operand type for unary {}: '{}'", op == Op::Neg ? '-' : '+', type_name(v));
}

bool contains(const Value& container, const Value& item) {
  Meter::current().work(1);
  switch (container.kind()) {
    case Kind::Undefined:
      return false;
    case Kind::Str:
      if (!item.is(Kind::Str))
        fail(kTypeError, "'in <string>' requires string as left operand, not {}", type_name(item));
      Meter::current().scan(container.text().size());
      return container.text().find(item.text()) != std::string::npos;
    case Kind::List:
    case Kind::Tuple:
      return std::any_of(container.items().begin(), container.items().end(),
                         [&](const Value& v) { return same_object(v, item) || equals(v, item); });
    case Kind::Dict:
      return container.as_dict().find(item) != nullptr;
    case Kind::DictView: {
      const auto& view = container.as<DictView>();
      if (view.part == DictView::Keys) return view.dict->find(item) != nullptr;
      break;
    }
    case Kind::Range:
    case Kind::Iterator:
    case Kind::Loop:
      break;
    default:
      fail(kTypeError, "argument of type '{}' is not iterable", type_name(container));
  }
  Value source = iterate(container);
  Value v;
  while (source.as<Iterator>().step(v)) {
    if (same_object(v, item) || equals(v, item)) return true;
  }
  return false;
}

bool compare_op(Op op, const Value& a, const Value& b) {
  switch (op) {
    case Op::Eq:
      return equals(a, b);
    case Op::Ne:
      return !equals(a, b);
    case Op::Lt:
      return compare(a, Order::Less, b);
    case Op::LtEq:
      return compare(a, Order::LessEqual, b);
    case Op::Gt:
      return compare(a, Order::Greater, b);
    case Op::GtEq:
      return compare(a, Order::GreaterEqual, b);
    case Op::In:
      return contains(b, a);
    default:
      return !contains(b, a);
  }
}

}  // namespace cyb::jinja
