// SPDX-License-Identifier: Apache-2.0
// Attributes and methods of the values that are not strings.
#include <bit>
#include <cmath>

#include "text/template/library.h"
#include "text/template/loop.h"
#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

Value bound(const Value& self, std::string_view name, Method method) {
  Value v = function(std::string(name), [self, method](Args& args) { return method(self, args); });
  v.as<Function>().self = self;
  return v;
}

Value unsupported(const Value& self, Args&) {
  fail(kUnsupported, "a method of '{}' that no chat template uses", type_name(self));
}

// ---------------------------------------------------------------------------------------------- dict

Value dict_get(const Value& self, Args& args) {
  no_keywords("dict.get", args, 1, 2);
  if (const Value* found = self.as_dict().find(args.positional[0])) return *found;
  return args.positional.size() > 1 ? args.positional[1] : Value::none();
}

template <DictView::Part Part>
Value dict_view(const Value& self, Args& args) {
  no_keywords("dict view", args, 0, 0);
  return Value(Kind::DictView, new DictView(Ref<Dict>(&self.as<Dict>()), Part));
}

Value dict_copy(const Value& self, Args& args) {
  no_keywords("dict.copy", args, 0, 0);
  return self;
}

Value dict_from_keys(const Value&, Args& args) {
  no_keywords("fromkeys", args, 1, 2);
  Ref<Dict> dict(new Dict);
  for (Value& key : to_list(args.positional[0]))
    dict->set(std::move(key), args.positional.size() > 1 ? args.positional[1] : Value::none());
  return Value::dict(dict);
}

constexpr Entry<Method> kDictMethods[] = {
    {"copy", dict_copy},
    {"fromkeys", dict_from_keys},
    {"get", dict_get},
    {"items", dict_view<DictView::Items>},
    {"keys", dict_view<DictView::Keys>},
    {"values", dict_view<DictView::Values>},
};

// ---------------------------------------------------------------------------------------------- list, tuple,
// range

Value seq_count(const Value& self, Args& args) {
  no_keywords("count", args, 1, 1);
  int64_t n = 0;
  for (const Value& v : to_list(self))
    n += same_object(v, args.positional[0]) || equals(v, args.positional[0]);
  return Value::integer(n);
}

Value seq_index(const Value& self, Args& args) {
  no_keywords("index", args, 1, 3);
  std::vector<Value> items = to_list(self);
  auto n = static_cast<int64_t>(items.size());
  auto bound = [&](size_t i, int64_t otherwise) {
    if (i >= args.positional.size()) return otherwise;
    int64_t v = index_of(args.positional[i]);
    return v < 0 ? std::max<int64_t>(v + n, 0) : std::min(v, n);
  };
  for (int64_t i = bound(1, 0); i < bound(2, n); ++i) {
    const Value& v = items[static_cast<size_t>(i)];
    if (same_object(v, args.positional[0]) || equals(v, args.positional[0])) return Value::integer(i);
  }
  fail(kValueError, "{} is not in {}", repr(args.positional[0]), type_name(self));
}

Value seq_copy(const Value& self, Args& args) {
  no_keywords("list.copy", args, 0, 0);
  return self;
}

constexpr Entry<Method> kListMethods[] = {{"copy", seq_copy}, {"count", seq_count}, {"index", seq_index}};
constexpr Entry<Method> kTupleMethods[] = {{"count", seq_count}, {"index", seq_index}};

// ---------------------------------------------------------------------------------------------- numbers

Value int_bit_length(const Value& self, Args& args) {
  no_keywords("bit_length", args, 0, 0);
  Int128 i = self.as_int();
  auto magnitude = i < 0 ? -static_cast<unsigned __int128>(i) : static_cast<unsigned __int128>(i);
  auto high = static_cast<uint64_t>(magnitude >> 64);
  return Value::integer(high ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(magnitude)));
}

Value number_conjugate(const Value& self, Args& args) {
  no_keywords("conjugate", args, 0, 0);
  return self.is(Kind::Bool) ? Value::integer(self.as_int()) : self;
}

Value float_is_integer(const Value& self, Args& args) {
  no_keywords("is_integer", args, 0, 0);
  return Value::boolean(std::isfinite(self.as_float()) && std::floor(self.as_float()) == self.as_float());
}

constexpr Entry<Method> kIntMethods[] = {
    {"as_integer_ratio", unsupported}, {"bit_count", unsupported},  {"bit_length", int_bit_length},
    {"conjugate", number_conjugate},   {"from_bytes", unsupported}, {"to_bytes", unsupported},
};
constexpr Entry<Method> kFloatMethods[] = {
    {"as_integer_ratio", unsupported}, {"conjugate", number_conjugate},
    {"fromhex", unsupported},          {"hex", unsupported},
    {"is_integer", float_is_integer},
};

Value number_attribute(const Value& self, std::string_view name) {
  bool real = self.is(Kind::Float);
  if (name == "real") return self.is(Kind::Bool) ? Value::integer(self.as_int()) : self;
  if (name == "imag") return real ? Value::real(0) : Value::integer(0);
  if (!real && name == "numerator") return Value::integer(self.as_int());
  if (!real && name == "denominator") return Value::integer(1);
  Method method = real ? find_entry(kFloatMethods, name) : find_entry(kIntMethods, name);
  return method ? bound(self, name, method) : Value();
}

// ---------------------------------------------------------------------------------------------- the rest

Value cycler_attribute(const Value& self, std::string_view name) {
  auto& cycler = self.as<Cycler>();
  if (name == "items") return Value::tuple(cycler.items);
  if (name == "pos") return Value::integer(static_cast<int64_t>(cycler.position));
  if (name == "current") return cycler.items.at(cycler.position);
  if (name == "next") {
    return bound(self, name, [](const Value& me, Args& args) {
      no_keywords("next", args, 0, 0);
      auto& c = me.as<Cycler>();
      Value now = c.items.at(c.position);
      c.position = (c.position + 1) % c.items.size();
      return now;
    });
  }
  if (name == "reset") {
    return bound(self, name, [](const Value& me, Args& args) {
      no_keywords("reset", args, 0, 0);
      me.as<Cycler>().position = 0;
      return Value::none();
    });
  }
  return {};
}

Value range_attribute(const Value& self, std::string_view name) {
  const auto& range = self.as<Range>();
  if (name == "start") return Value::integer(range.start);
  if (name == "stop") return Value::integer(range.stop);
  if (name == "step") return Value::integer(range.step);
  Method method = find_entry(kTupleMethods, name);
  return method ? bound(self, name, method) : Value();
}

}  // namespace

bool is_mutator(const Value& self, std::string_view name) {
  constexpr std::string_view dict_names[] = {"clear", "pop", "popitem", "setdefault", "update"};
  constexpr std::string_view list_names[] = {"append", "clear", "pop",    "reverse",
                                             "insert", "sort",  "extend", "remove"};
  auto among = [&](const auto& names) {
    for (std::string_view n : names) {
      if (n == name) return true;
    }
    return false;
  };
  return self.is(Kind::Dict) ? among(dict_names) : self.is(Kind::List) && among(list_names);
}

Value find_attribute(const Value& self, std::string_view name) {
  Method method = nullptr;
  switch (self.kind()) {
    case Kind::Str:
      method = name == "striptags" && !self.is_safe() ? nullptr : find_str_method(name);
      break;
    case Kind::Dict:
      method = find_entry(kDictMethods, name);
      break;
    case Kind::List:
      method = find_entry(kListMethods, name);
      break;
    case Kind::Tuple:
      if (auto* group = dynamic_cast<Group*>(self.object())) {
        if (name == "grouper") return group->items[0];
        if (name == "list") return group->items[1];
      }
      method = find_entry(kTupleMethods, name);
      break;
    case Kind::Bool:
    case Kind::Int:
    case Kind::Float:
      return number_attribute(self, name);
    case Kind::Range:
      return range_attribute(self, name);
    case Kind::DictView:
      if (name == "mapping") return Value::dict(self.as<DictView>().dict);
      if (name == "isdisjoint" && self.as<DictView>().part != DictView::Values) method = unsupported;
      break;
    case Kind::Loop:
      return self.as<Loop>().attribute(name);
    case Kind::Cycler:
      return cycler_attribute(self, name);
    case Kind::Macro:
    case Kind::Function:
      return self.as<NamedCallable>().attribute(name);
    default:
      break;
  }
  return method ? bound(self, name, method) : Value();
}

}  // namespace cyb::jinja
