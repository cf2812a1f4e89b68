// SPDX-License-Identifier: Apache-2.0
// What goes wrong while a template is parsed or rendered, under the names of Python's exceptions.
// Internal: template.cc turns it into a cyb::Error with line and column.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace cyb::jinja {

struct FailureType {
  const char* name;
};

struct Failure {
  Failure(const FailureType& t, std::string m) : type(&t), message(std::move(m)) {}
  bool is(const FailureType& t) const { return type == &t; }
  const FailureType* type;
  std::string message;
};

// The template's own raise_exception.
inline constexpr FailureType kTemplateError{"TemplateError"};
inline constexpr FailureType kSyntaxError{"TemplateSyntaxError"};
inline constexpr FailureType kAssertionError{"TemplateAssertionError"};
inline constexpr FailureType kRuntimeError{"TemplateRuntimeError"};
inline constexpr FailureType kArgumentError{"FilterArgumentError"};
inline constexpr FailureType kUndefinedError{"UndefinedError"};
inline constexpr FailureType kSecurityError{"SecurityError"};
inline constexpr FailureType kTypeError{"TypeError"};
inline constexpr FailureType kValueError{"ValueError"};
inline constexpr FailureType kKeyError{"KeyError"};
inline constexpr FailureType kIndexError{"IndexError"};
inline constexpr FailureType kOverflowError{"OverflowError"};
inline constexpr FailureType kZeroDivision{"ZeroDivisionError"};
inline constexpr FailureType kAttributeError{"AttributeError"};
inline constexpr FailureType kPythonAssertion{"AssertionError"};
inline constexpr FailureType kPythonRuntimeError{"RuntimeError"};
// Our own: beyond the limits of a rendering, and not made.
inline constexpr FailureType kLimitError{"LimitError"};
inline constexpr FailureType kUnsupported{"Unsupported"};

template <class... Args>
[[noreturn]] void fail(const FailureType& type, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure(type, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cyb::jinja
