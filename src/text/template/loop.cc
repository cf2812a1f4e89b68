// SPDX-License-Identifier: Apache-2.0
// The `loop` variable.
#include "text/template/loop.h"

namespace cyb::jinja {

Loop::Loop(const Value& iterable, Recurse recurse, int64_t depth0)
    : iterable_(iterable), iterator_(iterate(iterable)), recurse_(std::move(recurse)), depth0_(depth0) {}

void Loop::clear() {
  iterable_ = iterator_ = before_ = current_ = after_ = last_changed_ = Value();
  recurse_ = nullptr;
}

bool Loop::step(Value& out) {
  Value item;
  if (!after_.is(Kind::Missing)) {
    item = std::move(after_);
    after_ = Value();
  } else if (!iterator_.is(Kind::Iterator) || !iterator_.as<Iterator>().step(item)) {
    return false;
  }
  ++index0_;
  before_ = std::move(current_);
  current_ = item;
  out = std::move(item);
  return true;
}

bool Loop::peek() {
  if (!after_.is(Kind::Missing)) return true;
  return iterator_.is(Kind::Iterator) && iterator_.as<Iterator>().step(after_);
}

bool Loop::is_last() { return !peek(); }

size_t Loop::length() {
  if (length_ >= 0) return static_cast<size_t>(length_);
  if (has_length(iterable_)) {
    length_ = static_cast<int64_t>(length_of(iterable_));
  } else {
    std::vector<Value> rest;
    Value item;
    while (iterator_.is(Kind::Iterator) && iterator_.as<Iterator>().step(item)) rest.push_back(item);
    length_ = static_cast<int64_t>(rest.size()) + index0_ + 1 + (after_.is(Kind::Missing) ? 0 : 1);
    iterator_ = iterate(Value::list(std::move(rest)));
  }
  return static_cast<size_t>(length_);
}

Value Loop::call(Args& args) {
  if (!recurse_) fail(kTypeError, "The loop must have the 'recursive' marker to be called recursively.");
  if (args.positional.size() + args.named.size() != 1) fail(kTypeError, "loop() takes one iterable");
  Value iterable = args.positional.empty() ? args.named[0].second : args.positional[0];
  return recurse_(iterable, depth0_ + 1);
}

bool Loop::changed(std::vector<Value> values) {
  Value now = Value::tuple(std::move(values));
  if (!last_changed_.is(Kind::Missing) && equals(last_changed_, now)) return false;
  last_changed_ = std::move(now);
  return true;
}

Value Loop::attribute(std::string_view name) {
  auto number = [](int64_t n) { return Value::integer(n); };
  if (name == "index0") return number(index0_);
  if (name == "index") return number(index0_ + 1);
  if (name == "first") return Value::boolean(index0_ == 0);
  if (name == "last") return Value::boolean(is_last());
  if (name == "length") return number(static_cast<int64_t>(length()));
  if (name == "revindex0") return number(static_cast<int64_t>(length()) - index0_ - 1);
  if (name == "revindex") return number(static_cast<int64_t>(length()) - index0_);
  if (name == "depth0") return number(depth0_);
  if (name == "depth") return number(depth0_ + 1);
  if (name == "previtem") return index0_ == 0 ? undefined_hint("there is no previous item") : before_;
  if (name == "nextitem") return peek() ? after_ : undefined_hint("there is no next item");
  if (name == "cycle") {
    Ref<Loop> self(this);
    return function("cycle", [self](Args& args) {
      if (!args.named.empty())
        fail(kTypeError, "LoopContext.cycle() got an unexpected keyword argument '{}'", args.named[0].first);
      if (args.positional.empty()) fail(kTypeError, "no items for cycling given");
      auto count = static_cast<int64_t>(args.positional.size());
      return args.positional[static_cast<size_t>(((self->index0_ % count) + count) % count)];
    });
  }
  if (name == "changed") {
    Ref<Loop> self(this);
    return function("changed", [self](Args& args) {
      if (!args.named.empty())
        fail(kTypeError, "LoopContext.changed() got an unexpected keyword argument '{}'",
             args.named[0].first);
      return Value::boolean(self->changed(std::move(args.positional)));
    });
  }
  return {};
}

}  // namespace cyb::jinja
