// SPDX-License-Identifier: Apache-2.0
// What the methods of Python's str share.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "text/template/library.h"

namespace cyb::jinja {

// Methods that go by the kind of each character: cases, is…().
Method find_str_character_method(std::string_view name);

inline const std::string& self_text(const Value& self) {
  Meter::current().scan(self.text().size());
  return self.text();
}

// Markup where `self` is.
inline Value like(const Value& self, std::string text) {
  return Value::string(std::move(text), self.is_safe());
}
inline Value like(const Value& self, std::string_view text) { return like(self, std::string(text)); }

}  // namespace cyb::jinja
