// SPDX-License-Identifier: Apache-2.0
// Attributes, subscripts, slices and calls, as the immutable sandbox of jinja2 lets templates have them.
#include <algorithm>
#include <limits>

#include "text/template/library.h"
#include "text/template/loop.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

// obj[key] in Python; Missing for TypeError and LookupError.
Value python_item(const Value& object, const Value& key) {
  switch (object.kind()) {
    case Kind::Undefined:
      fail_undefined(object);
    case Kind::Dict: {
      try {
        const Value* found = object.as_dict().find(key);
        return found ? *found : Value();
      } catch (const Failure& failure) {
        if (!failure.is(kTypeError)) throw;
        return {};  // an unhashable key
      }
    }
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      break;
    default:
      return {};
  }
  if (!key.is_integral()) return {};
  auto n = static_cast<Int128>(length_of(object));
  Int128 i = key.as_int();
  if (i < 0) i += n;
  if (i < 0 || i >= n) return {};
  auto index = static_cast<size_t>(i);
  if (object.is_sequence()) return object.items()[index];
  if (object.is(Kind::Range)) {
    const auto& range = object.as<Range>();
    return Value::integer(Int128(range.start) + Int128(range.step) * i);
  }
  const auto& text = object.as<Str>();
  if (text.ascii()) return Value::string(text.text.substr(index, 1), text.safe);
  Meter::current().scan(text.text.size());
  size_t from = byte_offset(text.text, index);
  size_t to = from;
  next_code_point(text.text, to);
  return Value::string(text.text.substr(from, to - from), text.safe);
}

bool is_private(std::string_view name) { return name.starts_with("_"); }

// Attributes that every Python object has: they exist, and the sandbox refuses them.
bool is_dunder(const Value& object, std::string_view name) {
  constexpr std::string_view container_names[] = {"__add__", "__contains__", "__getitem__", "__iter__",
                                                  "__len__", "__mul__",      "__rmul__"};
  if (has_length(object) && !object.is(Kind::Undefined) && !object.is(Kind::Loop) &&
      std::find(std::begin(container_names), std::end(container_names), name) != std::end(container_names)) {
    return true;
  }
  constexpr std::string_view names[] = {
      "__class__",   "__delattr__", "__dir__",           "__doc__",         "__eq__",
      "__format__",  "__ge__",      "__getattribute__",  "__getstate__",    "__gt__",
      "__hash__",    "__init__",    "__init_subclass__", "__le__",          "__lt__",
      "__ne__",      "__new__",     "__reduce__",        "__reduce_ex__",   "__repr__",
      "__setattr__", "__sizeof__",  "__str__",           "__subclasshook__"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// getattr(object, name) with the sandbox's verdict; Missing where Python raises AttributeError.
Value python_attribute(const Value& object, std::string_view name) {
  if (object.is(Kind::Undefined)) {
    if (name.starts_with("__") && name.ends_with("__") && !is_dunder(object, name)) return {};
    if (!is_dunder(object, name)) fail_undefined(object);
  }
  if (object.is(Kind::Namespace)) {
    const Value* found = object.as<Namespace>().attributes->find(name);
    if (found) return *found;
    return {};
  }
  if (is_dunder(object, name) || is_mutator(object, name)) return undefined_unsafe(object, name);
  if (is_private(name)) return {};
  return find_attribute(object, name);
}

int64_t slice_index(const Value* v, int64_t otherwise) {
  if (!v || v->is(Kind::None)) return otherwise;
  if (!v->is_integral())
    fail(kTypeError, "slice indices must be integers or None or have an __index__ method");
  constexpr Int128 most = std::numeric_limits<int64_t>::max() / 4;
  return static_cast<int64_t>(std::clamp(v->as_int(), -most, most));
}

}  // namespace

Value get_attribute(const Value& object, std::string_view name) {
  Meter::current().work(1);
  Value v = python_attribute(object, name);
  if (!v.is(Kind::Missing)) return v;
  if (object.is(Kind::Undefined)) fail_undefined(object);
  if (object.is(Kind::Dict)) {
    if (const Value* found = object.as_dict().find(name)) return *found;
  }
  return undefined_member(object, Value::string(std::string(name)));
}

Value get_item(const Value& object, const Value& key) {
  Meter::current().work(1);
  Value v = python_item(object, key);
  if (!v.is(Kind::Missing)) return v;
  if (key.is(Kind::Str)) {
    v = python_attribute(object, key.text());
    if (!v.is(Kind::Missing)) return v;
  }
  return undefined_member(object, key);
}

Value get_slice(const Value& object, const Value* start, const Value* stop, const Value* step) {
  switch (object.kind()) {
    case Kind::Undefined:
      fail_undefined(object);
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Range:
      break;
    case Kind::Dict:
      fail(kTypeError, "unhashable type: 'slice'");
    default:
      fail(kTypeError, "'{}' object is not subscriptable", type_name(object));
  }
  int64_t stride = slice_index(step, 1);
  if (stride == 0) fail(kValueError, "slice step cannot be zero");
  auto n = static_cast<int64_t>(length_of(object));
  bool backward = stride < 0;
  auto place = [&](int64_t i) {
    if (i < 0) i += n;
    return std::clamp<int64_t>(i, backward ? -1 : 0, backward ? n - 1 : n);
  };
  constexpr int64_t absent = std::numeric_limits<int64_t>::min();
  int64_t first = slice_index(start, absent), last = slice_index(stop, absent);
  first = first == absent ? (backward ? n - 1 : 0) : place(first);
  last = last == absent ? (backward ? -1 : n) : place(last);
  Range taken(first, last, stride);
  int64_t count = taken.size();

  if (object.is(Kind::Range)) {
    const auto& range = object.as<Range>();
    int64_t new_step = range.step * stride;
    return Value(Kind::Range,
                 new Range(range.start + first * range.step, range.start + last * range.step, new_step));
  }
  if (object.is_sequence()) {
    Meter::current().items(static_cast<uint64_t>(count));
    std::vector<Value> items;
    items.reserve(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      items.push_back(object.items()[static_cast<size_t>(first + i * stride)]);
    return object.is(Kind::List) ? Value::list(std::move(items)) : Value::tuple(std::move(items));
  }
  const auto& text = object.as<Str>();
  Meter::current().string(text.text.size());
  std::string out;
  if (count > 0 && stride == 1) {
    size_t from =
        text.ascii() ? static_cast<size_t>(first) : byte_offset(text.text, static_cast<size_t>(first));
    size_t to = text.ascii() ? static_cast<size_t>(last)
                             : from + byte_offset(std::string_view(text.text).substr(from),
                                                  static_cast<size_t>(count));
    out = text.text.substr(from, to - from);
  } else if (text.ascii()) {
    for (int64_t i = 0; i < count; ++i) out += text.text[static_cast<size_t>(first + i * stride)];
  } else {
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.text.size(); next_code_point(text.text, at)) starts.push_back(at);
    starts.push_back(text.text.size());
    for (int64_t i = 0; i < count; ++i) {
      auto k = static_cast<size_t>(first + i * stride);
      out.append(text.text, starts[k], starts[k + 1] - starts[k]);
    }
  }
  return Value::string(std::move(out), text.safe);
}

Value call_value(const Value& callee, Args& args) {
  Depth depth;
  Meter::current().work(1);
  switch (callee.kind()) {
    case Kind::Undefined:
      fail_undefined(callee);
    case Kind::Function:
    case Kind::Macro: {
      Ref<NamedCallable> keep(&callee.as<NamedCallable>());
      return keep->invoke(args);
    }
    case Kind::Loop:
      return callee.as<Loop>().call(args);
    default:
      fail(kTypeError, "'{}' object is not callable", type_name(callee));
  }
}

// ---------------------------------------------------------------------------------------------- arguments

Bound::Bound(std::string_view function, Args& args, std::initializer_list<std::string_view> names,
             size_t required)
    : values_(names.size()) {
  if (args.positional.size() > names.size()) {
    fail(kTypeError, "{}() takes at most {} arguments ({} given)", function, names.size(),
         args.positional.size());
  }
  for (size_t i = 0; i < args.positional.size(); ++i) values_[i] = args.positional[i];
  for (auto& [name, value] : args.named) {
    auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) fail(kTypeError, "{}() got an unexpected keyword argument '{}'", function, name);
    Value& slot = values_[static_cast<size_t>(it - names.begin())];
    if (!slot.is(Kind::Missing))
      fail(kTypeError, "{}() got multiple values for argument '{}'", function, name);
    slot = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!has(i)) fail(kTypeError, "{}() missing required argument: '{}'", function, *(names.begin() + i));
  }
}

int64_t Bound::integer(size_t i, int64_t otherwise) const {
  return has(i) ? index_of(values_[i]) : otherwise;
}

void no_keywords(std::string_view function, const Args& args, size_t least, size_t most) {
  if (!args.named.empty()) fail(kTypeError, "{}() takes no keyword arguments", function);
  if (args.positional.size() < least || args.positional.size() > most) {
    fail(kTypeError, "{}() takes {} to {} arguments ({} given)", function, least, most,
         args.positional.size());
  }
}

int64_t index_of(const Value& v) {
  if (v.is(Kind::Undefined)) fail(kTypeError, "'Undefined' object cannot be interpreted as an integer");
  if (!v.is_integral()) fail(kTypeError, "'{}' object cannot be interpreted as an integer", type_name(v));
  Int128 i = v.as_int();
  if (i > std::numeric_limits<int64_t>::max() || i < std::numeric_limits<int64_t>::min()) {
    fail(kOverflowError, "Python int too large to convert to C ssize_t");
  }
  return static_cast<int64_t>(i);
}

const std::string& text_of(const Value& v, std::string_view what) {
  if (!v.is(Kind::Str)) fail(kTypeError, "{} must be str, not {}", what, type_name(v));
  return v.text();
}

}  // namespace cyb::jinja
