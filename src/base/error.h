// SPDX-License-Identifier: Apache-2.0
// The one error type of the program. It is thrown across modules; kernels never throw.
#pragma once

#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>

namespace cyb {

enum class ErrorKind {
  UnsupportedOp,
  UnsupportedModel,
  ShapeMismatch,
  MissingTensor,
  WeightFormat,
  InvalidConfig,
  InvalidFile,
  Tokenizer,
  OutOfMemory,
  BackendInit,
  Io,
  Usage,
};

// The kind's name as written above.
const char* to_string(ErrorKind kind);

// What was found and where (`message`), and what to do about it (`advice`, may be empty).
// what() is the message with the kind before it, advice() the second line that the program prints.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message, std::string advice = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& advice() const { return advice_; }
  const char* what() const noexcept override { return what_.c_str(); }

  // The same error with this advice.
  template <class... Args>
  Error advise(fmt::format_string<Args...> format, Args&&... args) const {
    return Error(kind_, message_, fmt::format(format, std::forward<Args>(args)...));
  }

  // The same error with "where: " before its message (a file, a tensor, a node).
  Error at(const std::string& where) const { return Error(kind_, where + ": " + message_, advice_); }

 private:
  ErrorKind kind_;
  std::string message_;
  std::string advice_;
  std::string what_;
};

// throw error(ErrorKind::Io, "cannot open '{}'", path).advise("check the path");
template <class... Args>
Error error(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  return Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace cyb
