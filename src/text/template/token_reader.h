// SPDX-License-Identifier: Apache-2.0
// A parser's view of the tokens: the current one, the next, and what is wrong when another was expected.
#pragma once

#include <initializer_list>
#include <string_view>

#include "text/template/lexer.h"

namespace cyb::jinja {

class TokenReader {
 public:
  // `at` follows the current token.
  TokenReader(std::string_view source, size_t& at);

 protected:
  const Token& current() const { return lexed_.tokens[position_]; }
  Token next();
  const Token& look();  // the one behind the current one

  bool is(Tok kind) const { return current().kind == kind; }
  bool is_name(std::string_view name) const { return is(Tok::Name) && current().text == name; }
  bool is_any_name(std::initializer_list<std::string_view> names) const;
  bool skip_if(Tok kind);
  bool skip_if_name(std::string_view name);
  [[noreturn]] void unexpected(std::string_view expected);
  Token expect(Tok kind);
  void expect_name(std::string_view name);

  void check();  // that there is a current token: the lexer may have failed here
  LexResult lexed_;
  size_t position_ = 0;
  size_t& at_;
};

}  // namespace cyb::jinja
