// SPDX-License-Identifier: Apache-2.0
// The values of a template: memory, truth, length, iteration. Equality, order and hashes: compare.cc.
#include "text/template/value.h"

#include <limits>

#include "text/template/loop.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {

namespace {
thread_local CycleGuard* cycle_guard = nullptr;
thread_local std::vector<Object*>* dying = nullptr;

Meter& fallback_meter() {
  constexpr uint64_t no_limit = std::numeric_limits<uint64_t>::max() / 2;
  static thread_local Meter meter(no_limit, no_limit, no_limit, 200);
  return meter;
}
}  // namespace

thread_local Meter* Meter::current_ = &fallback_meter();

void Object::destroy(Object* object) {
  if (dying) {
    dying->push_back(object);
    return;
  }
  std::vector<Object*> queue;
  dying = &queue;
  delete object;
  while (!queue.empty()) {
    Object* next = queue.back();
    queue.pop_back();
    delete next;
  }
  dying = nullptr;
}

Cyclic::Cyclic() {
  if (!cycle_guard) return;
  next_ = cycle_guard->first_;
  if (next_) next_->previous_ = this;
  cycle_guard->first_ = this;
}

Cyclic::~Cyclic() {
  if (previous_) {
    previous_->next_ = next_;
  } else if (cycle_guard && cycle_guard->first_ == this) {
    cycle_guard->first_ = next_;
  }
  if (next_) next_->previous_ = previous_;
}

CycleGuard::CycleGuard() : before_(cycle_guard) { cycle_guard = this; }

CycleGuard::~CycleGuard() {
  std::vector<Ref<Cyclic>> all;
  for (Cyclic* c = first_; c; c = c->next_) all.emplace_back(c);
  for (auto& c : all) c->clear();
  all.clear();
  cycle_guard = before_;
}

// ---------------------------------------------------------------------------------------------- making

Str::Str(std::string t, bool markup) : text(std::move(t)), safe(markup) {
  Meter::current().hold(text.size() + sizeof(Str));
}
Str::~Str() { Meter::current().release(text.size() + sizeof(Str)); }

size_t Str::length() const {
  if (length_ == SIZE_MAX) length_ = count_code_points(text);
  return length_;
}

Seq::Seq(std::vector<Value> v) : items(std::move(v)) { Meter::current().hold(items.size() * sizeof(Value)); }
Seq::~Seq() { Meter::current().release(items.size() * sizeof(Value)); }

Value Value::string(std::string text, bool safe) {
  Meter::current().string(text.size());
  return Value(Kind::Str, new Str(std::move(text), safe));
}
Value Value::list(std::vector<Value> items) {
  Meter::current().items(items.size());
  return Value(Kind::List, new Seq(std::move(items)));
}
Value Value::tuple(std::vector<Value> items) {
  Meter::current().items(items.size());
  return Value(Kind::Tuple, new Seq(std::move(items)));
}
Value Value::dict(Ref<Dict> dict) { return Value(Kind::Dict, dict.get()); }

const std::string& Value::text() const { return as<Str>().text; }
bool Value::is_safe() const { return kind_ == Kind::Str && as<Str>().safe; }
const std::vector<Value>& Value::items() const { return as<Seq>().items; }
const Dict& Value::as_dict() const { return as<Dict>(); }

Value function(std::string name, Function::Call call) {
  return Value(Kind::Function, new Function(std::move(name), std::move(call)));
}
Value iterator(const char* name, Iterator::Next next) {
  return Value(Kind::Iterator, new Iterator(name, std::move(next)));
}

// ---------------------------------------------------------------------------------------------- dict

Dict::~Dict() { Meter::current().release(held_); }

size_t Dict::position(const Value& key, size_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < items.size(); ++i) {
      if (equals(items[i].first, key)) return i;
    }
    return SIZE_MAX;
  }
  auto [from, to] = index_.equal_range(hash);
  for (auto it = from; it != to; ++it) {
    if (equals(items[it->second].first, key)) return it->second;
  }
  return SIZE_MAX;
}

void Dict::set(Value key, Value value) {
  size_t hash = hash_of(key);
  size_t at = position(key, hash);
  if (at != SIZE_MAX) {
    items[at].second = std::move(value);
    return;
  }
  Meter& meter = Meter::current();
  meter.work(1);
  meter.hold(2 * sizeof(Value));
  held_ += 2 * sizeof(Value);
  items.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(hash, static_cast<uint32_t>(items.size() - 1));
  } else if (items.size() == 16) {
    for (size_t i = 0; i < items.size(); ++i)
      index_.emplace(hash_of(items[i].first), static_cast<uint32_t>(i));
  }
}

const Value* Dict::find(const Value& key) const {
  size_t at = position(key, hash_of(key));
  return at == SIZE_MAX ? nullptr : &items[at].second;
}

const Value* Dict::find(std::string_view key) const {
  auto is = [&](const Value& k) { return k.is(Kind::Str) && k.text() == key; };
  if (index_.empty()) {
    for (const auto& [k, v] : items) {
      if (is(k)) return &v;
    }
    return nullptr;
  }
  auto [from, to] = index_.equal_range(hash_of(key));
  for (auto it = from; it != to; ++it) {
    if (is(items[it->second].first)) return &items[it->second].second;
  }
  return nullptr;
}

// ---------------------------------------------------------------------------------------------- the rest

int64_t Range::size() const {
  if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
  return start > stop ? (start - stop - 1) / -step + 1 : 0;
}

Value DictView::at(size_t i) const {
  const auto& [key, value] = dict->items[i];
  if (part == Keys) return key;
  if (part == Values) return value;
  return Value::tuple({key, value});
}

bool Iterator::step(Value& out) {
  Depth depth;
  Meter::current().work(1);
  if (running) fail(kValueError, "generator already executing");
  if (!next) return false;
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  };
  bool more;
  {
    Running scope(running);
    more = next(out);
  }
  if (!more) next = nullptr;
  return more;
}

Value NamedCallable::attribute(std::string_view) const { return {}; }

Value Function::invoke(Args& args) {
  if (!call) fail(kRuntimeError, "a function outlived its rendering");
  return call(args);
}

void Namespace::clear() { attributes = Ref<Dict>(new Dict); }

std::string Undefined::message() const {
  if (!hint.empty()) return hint;
  if (owner.empty()) return fmt::format("{} is undefined", repr(name));
  if (!name.is(Kind::Str)) return fmt::format("{} has no element {}", owner, repr(name));
  return fmt::format("'{}' has no attribute {}", owner, repr(name));
}

Value undefined_name(std::string name) {
  auto* u = new Undefined;
  Value v(Kind::Undefined, u);
  u->name = Value::string(std::move(name));
  return v;
}

Value undefined_hint(std::string hint, std::string name) {
  auto* u = new Undefined;
  Value v(Kind::Undefined, u);
  u->hint = std::move(hint);
  u->name = name.empty() ? Value::none() : Value::string(std::move(name));
  return v;
}

Value undefined_member(const Value& owner, const Value& name) {
  auto* u = new Undefined;
  Value v(Kind::Undefined, u);
  u->name = name;
  switch (owner.kind()) {
    case Kind::None:
      u->owner = "None";
      break;
    case Kind::Namespace:
      u->owner = "transformers.utils.chat_template_utils.TemplateNamespace object";
      break;
    case Kind::Macro:
    case Kind::Loop:
      u->owner = fmt::format("jinja2.runtime.{} object", type_name(owner));
      break;
    case Kind::Cycler:
      u->owner = "jinja2.utils.Cycler object";
      break;
    case Kind::Str:
      u->owner = owner.is_safe() ? "markupsafe.Markup object" : "str object";
      break;
    default:
      u->owner = fmt::format("{} object", type_name(owner));
  }
  return v;
}

Value undefined_unsafe(const Value& owner, std::string_view attribute) {
  auto* u = new Undefined;
  Value v(Kind::Undefined, u);
  u->hint =
      fmt::format("access to attribute {} of '{}' object is unsafe.", quoted(attribute), type_name(owner));
  u->name = Value::string(std::string(attribute));
  u->unsafe = true;
  return v;
}

void fail_undefined(const Value& undefined) {
  const auto& u = undefined.as<Undefined>();
  throw Failure{u.unsafe ? kSecurityError : kUndefinedError, u.message()};
}

const char* type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
      return "Undefined";
    case Kind::None:
      return "NoneType";
    case Kind::Bool:
      return "bool";
    case Kind::Int:
      return "int";
    case Kind::Float:
      return "float";
    case Kind::Str:
      return v.is_safe() ? "Markup" : "str";
    case Kind::List:
      return "list";
    case Kind::Tuple:
      return "tuple";
    case Kind::Dict:
      return "dict";
    case Kind::Range:
      return "range";
    case Kind::DictView:
      switch (v.as<DictView>().part) {
        case DictView::Keys:
          return "dict_keys";
        case DictView::Values:
          return "dict_values";
        default:
          return "dict_items";
      }
    case Kind::Iterator:
      return v.as<Iterator>().name;
    case Kind::Namespace:
      return "TemplateNamespace";
    case Kind::Function:
      return "builtin_function_or_method";
    case Kind::Macro:
      return "Macro";
    case Kind::Loop:
      return "LoopContext";
    case Kind::Cycler:
      return "Cycler";
  }
  return "object";
}

bool truth(const Value& v) {
  switch (v.kind()) {
    case Kind::Missing:
    case Kind::Undefined:
    case Kind::None:
      return false;
    case Kind::Bool:
    case Kind::Int:
      return v.as_int() != 0;
    case Kind::Float:
      return v.as_float() != 0;
    case Kind::Str:
      return !v.text().empty();
    default:
      return has_length(v) ? length_of(v) > 0 : true;
  }
}

bool has_length(const Value& v) {
  switch (v.kind()) {
    case Kind::Undefined:
    case Kind::Str:
    case Kind::List:
    case Kind::Tuple:
    case Kind::Dict:
    case Kind::Range:
    case Kind::DictView:
    case Kind::Loop:
      return true;
    default:
      return false;
  }
}

size_t length_of(const Value& v) {
  switch (v.kind()) {
    case Kind::Undefined:
      return 0;
    case Kind::Str:
      return v.as<Str>().length();
    case Kind::List:
    case Kind::Tuple:
      return v.items().size();
    case Kind::Dict:
      return v.as_dict().items.size();
    case Kind::Range:
      return static_cast<size_t>(v.as<Range>().size());
    case Kind::DictView:
      return v.as<DictView>().dict->items.size();
    case Kind::Loop:
      return v.as<Loop>().length();
    default:
      fail(kTypeError, "object of type '{}' has no len()", type_name(v));
  }
}

Value iterate(const Value& v) {
  switch (v.kind()) {
    case Kind::Iterator:
      return v;
    case Kind::Undefined:
      return iterator("generator", [](Value&) { return false; });
    case Kind::Str:
      return iterator("str_iterator", [v, at = size_t{0}](Value& out) mutable {
        const std::string& text = v.text();
        if (at >= text.size()) return false;
        size_t start = at;
        next_code_point(text, at);
        out = Value::string(text.substr(start, at - start));
        return true;
      });
    case Kind::List:
    case Kind::Tuple:
      return iterator(v.is(Kind::List) ? "list_iterator" : "tuple_iterator",
                      [v, i = size_t{0}](Value& out) mutable {
                        if (i >= v.items().size()) return false;
                        out = v.items()[i++];
                        return true;
                      });
    case Kind::Dict:
      return iterator("dict_keyiterator", [v, i = size_t{0}](Value& out) mutable {
        if (i >= v.as_dict().items.size()) return false;
        out = v.as_dict().items[i++].first;
        return true;
      });
    case Kind::Range:
      return iterator("range_iterator", [v, i = int64_t{0}, n = v.as<Range>().size()](Value& out) mutable {
        if (i >= n) return false;
        const auto& range = v.as<Range>();
        out = Value::integer(Int128(range.start) + Int128(range.step) * i++);
        return true;
      });
    case Kind::DictView:
      return iterator("dict_itemiterator", [v, i = size_t{0}](Value& out) mutable {
        const auto& view = v.as<DictView>();
        if (i >= view.dict->items.size()) return false;
        out = view.at(i++);
        return true;
      });
    case Kind::Loop:
      return iterator("LoopContext", [v](Value& out) {
        Value item;
        if (!v.as<Loop>().step(item)) return false;
        out = Value::tuple({item, v});
        return true;
      });
    default:
      fail(kTypeError, "'{}' object is not iterable", type_name(v));
  }
}

std::vector<Value> to_list(const Value& v) {
  if (v.is_sequence()) return v.items();
  Value source = iterate(v);
  std::vector<Value> out;
  Value item;
  while (source.as<Iterator>().step(item)) {
    if ((out.size() & 0xFFF) == 0xFFF) Meter::current().items(out.size());
    out.push_back(std::move(item));
  }
  return out;
}

bool is_iterable(const Value& v) { return v.is(Kind::Undefined) || v.is(Kind::Iterator) || (has_length(v)); }

bool is_callable(const Value& v) {
  return v.is(Kind::Undefined) || v.is(Kind::Function) || v.is(Kind::Macro) || v.is(Kind::Loop);
}

}  // namespace cyb::jinja
