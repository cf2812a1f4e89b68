// SPDX-License-Identifier: Apache-2.0
// Tokens of one line of the text form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cyb::ir {

struct Token {
  enum class Kind : uint8_t { end, word, number, string, value, weight, symbol };
  Kind kind = Kind::end;
  std::string text;  // word, number as written; string, value (%"…"), weight (@…) without marks; symbol: its
                     // characters
  int column = 1;
};

// Cuts one line. A word may hold dots; numbers are -1, 2.5, 1e-05, 0x1.8p-3.
class Lexer {
 public:
  Lexer(std::string_view line, int number, const std::string& where);

  const Token& peek() const { return token_; }
  Token next();
  bool at_end() const { return token_.kind == Token::Kind::end; }
  bool is(std::string_view symbol) const {
    return token_.kind == Token::Kind::symbol && token_.text == symbol;
  }
  bool is_word(std::string_view word) const {
    return token_.kind == Token::Kind::word && token_.text == word;
  }
  bool accept(std::string_view symbol);
  void expect(std::string_view symbol);
  void expect_end();
  std::string expect_word(const char* what);
  int64_t expect_integer();
  double expect_real();  // a number, inf, -inf or nan

  [[noreturn]] void fail(const std::string& expected) const;  // "…: expected X, found 'y'"
  [[noreturn]] void fail_at(int column, const std::string& message) const;
  int number() const { return number_; }

 private:
  void advance();
  void quoted(std::string& out);
  std::string_view line_;
  size_t at_ = 0;
  int number_;
  const std::string& where_;
  Token token_;
};

}  // namespace cyb::ir
