// SPDX-License-Identifier: Apache-2.0
// The values of a template: Python's, as far as templates can tell. Counted references; strings, lists,
// tuples and dicts never change once they are made (the sandbox forbids it).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/template/meter.h"

namespace cyb::jinja {

using Int128 = __int128;  // Python's integers have no end; what does not fit here is refused

enum class Kind : uint8_t {
  Missing,  // a name without a value; never seen by templates
  Undefined,
  None,
  Bool,
  Int,
  Float,
  Str,
  List,
  Tuple,
  Dict,
  Range,
  DictView,
  Iterator,
  Namespace,
  Function,
  Macro,
  Loop,
  Cycler,
};

class Object {
 public:
  Object() = default;
  virtual ~Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void retain() { ++references_; }
  void release() {
    if (--references_ == 0) destroy(this);
  }

 private:
  static void destroy(Object* object);  // never recurses, however long the chain of values
  uint32_t references_ = 0;
};

// An object that can hold itself through others: it is emptied when the rendering ends.
class Cyclic : public Object {
 public:
  Cyclic();
  ~Cyclic() override;
  virtual void clear() = 0;

 private:
  friend class CycleGuard;
  Cyclic* previous_ = nullptr;
  Cyclic* next_ = nullptr;
};

// Empties all cyclic objects made in its life when it ends. Scopes nest.
class CycleGuard {
 public:
  CycleGuard();
  ~CycleGuard();
  CycleGuard(const CycleGuard&) = delete;
  CycleGuard& operator=(const CycleGuard&) = delete;

 private:
  friend class Cyclic;
  Cyclic* first_ = nullptr;
  CycleGuard* before_;
};

template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ~Ref() {
    if (object_) object_->release();
  }
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  T* get() const { return object_; }
  T& operator*() const { return *object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

struct Str;
struct Seq;
struct Dict;

class Value {
 public:
  Value() : kind_(Kind::Missing), int_(0) {}
  Value(Kind kind, Object* object) : kind_(kind), object_(object) { object_->retain(); }
  Value(const Value& other) : kind_(other.kind_) {
    copy_payload(other);
    if (has_object()) object_->retain();
  }
  Value(Value&& other) noexcept : kind_(other.kind_) {
    copy_payload(other);
    other.kind_ = Kind::Missing;
  }
  ~Value() {
    if (has_object()) object_->release();
  }
  Value& operator=(const Value& other) {
    Value copy(other);
    swap(copy);
    return *this;
  }
  Value& operator=(Value&& other) noexcept {
    Value taken(std::move(other));
    swap(taken);
    return *this;
  }

  static Value none() { return Value(Kind::None); }
  static Value boolean(bool b) {
    Value v(Kind::Bool);
    v.int_ = b;
    return v;
  }
  static Value integer(Int128 i) {
    Value v(Kind::Int);
    v.int_ = i;
    return v;
  }
  static Value real(double d) {
    Value v(Kind::Float);
    v.float_ = d;
    return v;
  }
  // `safe`: Python's Markup, a text that needs no more HTML escaping.
  static Value string(std::string text, bool safe = false);
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(Ref<Dict> dict);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_integral() const { return kind_ == Kind::Int || kind_ == Kind::Bool; }
  bool is_number() const { return is_integral() || kind_ == Kind::Float; }
  bool is_sequence() const { return kind_ == Kind::List || kind_ == Kind::Tuple; }

  bool truth_of_bool() const { return int_ != 0; }
  Int128 as_int() const { return int_; }  // of Int128 and Bool
  double as_float() const { return kind_ == Kind::Float ? float_ : static_cast<double>(int_); }
  const std::string& text() const;          // of Str
  bool is_safe() const;                     // is a Str that is Markup
  const std::vector<Value>& items() const;  // of List and Tuple
  const Dict& as_dict() const;

  template <class T>
  T& as() const {
    return static_cast<T&>(*object_);
  }
  Object* object() const { return has_object() ? object_ : nullptr; }

 private:
  explicit Value(Kind kind) : kind_(kind), int_(0) {}
  bool has_object() const { return kind_ == Kind::Undefined || kind_ >= Kind::Str; }
  void copy_payload(const Value& other) {
    if (has_object()) {
      object_ = other.object_;
    } else if (kind_ == Kind::Float) {
      float_ = other.float_;
    } else {
      int_ = other.int_;
    }
  }
  void swap(Value& other) noexcept {
    std::swap(kind_, other.kind_);
    // The widest member carries any of them.
    std::swap(int_, other.int_);
  }

  Kind kind_;
  union {
    Int128 int_;
    double float_;
    Object* object_;
  };
};

struct Str : Object {
  Str(std::string t, bool markup);
  ~Str() override;
  size_t length() const;  // in code points, counted once
  bool ascii() const { return length() == text.size(); }

  const std::string text;
  const bool safe;

 private:
  mutable size_t length_ = SIZE_MAX;
};

struct Seq : Object {
  explicit Seq(std::vector<Value> v);
  ~Seq() override;
  const std::vector<Value> items;
};

// A pair of the groupby filter, whose parts also have names.
struct Group : Seq {
  using Seq::Seq;
};

// Insertion-ordered, as Python's. Filled by its maker, then left alone (a namespace's excepted).
struct Dict : Object {
  Dict() = default;
  ~Dict() override;
  void set(Value key, Value value);
  void set(std::string key, Value value) { set(Value::string(std::move(key)), std::move(value)); }
  const Value* find(const Value& key) const;  // throws TypeError for an unhashable key
  const Value* find(std::string_view key) const;

  std::vector<std::pair<Value, Value>> items;

 private:
  size_t position(const Value& key, size_t hash) const;
  void index_all() const;
  mutable std::unordered_multimap<size_t, uint32_t> index_;
  uint64_t held_ = 0;
};

struct Range : Object {
  Range(int64_t a, int64_t b, int64_t c) : start(a), stop(b), step(c) {}
  int64_t size() const;
  int64_t start, stop, step;
};

struct DictView : Object {
  enum Part { Keys, Values, Items };
  DictView(Ref<Dict> d, Part p) : dict(std::move(d)), part(p) {}
  Value at(size_t i) const;
  Ref<Dict> dict;
  Part part;
};

// Something that yields values once, on demand.
struct Iterator : Cyclic {
  using Next = std::function<bool(Value&)>;
  Iterator(const char* n, Next f) : name(n), next(std::move(f)) {}
  void clear() override { next = nullptr; }
  bool step(Value& out);
  const char* name;  // Python's name of its type
  Next next;
  bool running = false;
};

struct Namespace : Cyclic {
  void clear() override;
  Ref<Dict> attributes{new Dict};
};

// Why a value is undefined; the text is made only when it is needed.
struct Undefined : Object {
  std::string hint;     // the whole message, or
  Value name;           // the name or key that was looked up
  std::string owner;    // in what ("dict object"); empty for a variable
  bool unsafe = false;  // refused by the sandbox
  std::string message() const;
};

// Arguments of a call.
struct Args {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

struct NamedCallable : Cyclic {
  explicit NamedCallable(std::string n) : name(std::move(n)) {}
  virtual Value invoke(Args& args) = 0;
  virtual Value attribute(std::string_view name) const;  // Missing when there is none
  const std::string name;
};

struct Function : NamedCallable {
  using Call = std::function<Value(Args&)>;
  Function(std::string n, Call c) : NamedCallable(std::move(n)), call(std::move(c)) {}
  void clear() override {
    call = nullptr;
    self = Value();
  }
  Value invoke(Args& args) override;
  Call call;
  Value self;  // of a method; the same method of the same value is equal to itself
};

struct Cycler : Cyclic {
  explicit Cycler(std::vector<Value> v) : items(std::move(v)) {}
  void clear() override { items.clear(); }
  std::vector<Value> items;
  size_t position = 0;
};

Value undefined_name(std::string name);
Value undefined_hint(std::string hint, std::string name = {});
Value undefined_member(const Value& owner, const Value& name);
Value undefined_unsafe(const Value& owner, std::string_view attribute);
[[noreturn]] void fail_undefined(const Value& undefined);

Value function(std::string name, Function::Call call);
Value iterator(const char* name, Iterator::Next next);

const char* type_name(const Value& v);  // Python's: "str", "NoneType", …
bool truth(const Value& v);
bool equals(const Value& a, const Value& b);
bool same_object(const Value& a, const Value& b);
size_t hash_of(const Value& v);  // throws TypeError where Python's value is unhashable
size_t hash_of(std::string_view text);
enum class Order { Less, LessEqual, Greater, GreaterEqual };
bool compare(const Value& a, Order order, const Value& b);
size_t length_of(const Value& v);  // throws TypeError as len() does
bool has_length(const Value& v);
Value iterate(const Value& v);  // an Iterator; throws TypeError
std::vector<Value> to_list(const Value& v);
bool is_iterable(const Value& v);
bool is_callable(const Value& v);

}  // namespace cyb::jinja
