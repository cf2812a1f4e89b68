// SPDX-License-Identifier: Apache-2.0
// The `loop` variable: one item of look-ahead, lengths on demand, as jinja2's LoopContext.
#pragma once

#include <string_view>

#include "text/template/value.h"

namespace cyb::jinja {

struct Loop : Cyclic {
  using Recurse = std::function<Value(const Value& iterable, int64_t depth0)>;

  Loop(const Value& iterable, Recurse recurse, int64_t depth0);
  void clear() override;

  bool step(Value& out);
  size_t length();
  bool is_last();
  Value call(Args& args);
  bool changed(std::vector<Value> values);
  // The attribute of that name, Missing when there is none.
  Value attribute(std::string_view name);

 private:
  bool peek();
  Value iterable_;
  Value iterator_;
  Value before_, current_, after_, last_changed_;  // Missing until there is one
  int64_t index0_ = -1;
  int64_t length_ = -1;
  Recurse recurse_;
  int64_t depth0_;
};

}  // namespace cyb::jinja
