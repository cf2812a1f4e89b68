// SPDX-License-Identifier: Apache-2.0
// What goes wrong while a template is parsed or rendered, under the names of Python's exceptions.
// Internal: template.cc turns it into a cyb::Error with line and column.
#pragma once

#include <fmt/core.h>

#include <string>
#include <utility>

namespace cyb::jinja {

struct Failure {
  const char* type;  // "TypeError", "UndefinedError", …, "LimitError" and "Unsupported" for our own
  std::string message;
};

// The template's own raise_exception.
inline constexpr const char* kTemplateError = "TemplateError";
inline constexpr const char* kSyntaxError = "TemplateSyntaxError";
inline constexpr const char* kAssertionError = "TemplateAssertionError";
inline constexpr const char* kRuntimeError = "TemplateRuntimeError";
inline constexpr const char* kArgumentError = "FilterArgumentError";
inline constexpr const char* kUndefinedError = "UndefinedError";
inline constexpr const char* kSecurityError = "SecurityError";
inline constexpr const char* kTypeError = "TypeError";
inline constexpr const char* kValueError = "ValueError";
inline constexpr const char* kKeyError = "KeyError";
inline constexpr const char* kIndexError = "IndexError";
inline constexpr const char* kOverflowError = "OverflowError";
inline constexpr const char* kZeroDivision = "ZeroDivisionError";
inline constexpr const char* kLimitError = "LimitError";
inline constexpr const char* kUnsupported = "Unsupported";

template <class... Args>
[[noreturn]] void fail(const char* type, fmt::format_string<Args...> format, Args&&... args) {
  throw Failure{type, fmt::format(format, std::forward<Args>(args)...)};
}

}  // namespace cyb::jinja
