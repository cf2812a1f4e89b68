// SPDX-License-Identifier: Apache-2.0
// Parses expressions. The parser of statements builds on it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "text/template/ast.h"
#include "text/template/token_reader.h"

namespace cyb::jinja {

class ExpressionParser : public TokenReader {
 public:
  using TokenReader::TokenReader;

 protected:
  struct Nesting {
    explicit Nesting(ExpressionParser& p);
    ~Nesting() { --parser.nesting_; }
    ExpressionParser& parser;
  };

  static void set_use(Expr& e, Use use);
  ExprPtr assign_target(bool with_namespace, std::string_view end = {});
  ExprPtr tuple(bool with_condition = true, std::string_view end = {});
  ExprPtr expression(bool with_condition = true);
  ExprPtr filters(ExprPtr node, bool inline_start);

 private:
  static ExprPtr make(ExprKind kind, size_t at);
  static ExprPtr done(ExprPtr e);  // to be called when all children are there
  static ExprPtr binary(ExprKind kind, Op op, ExprPtr left, ExprPtr right, size_t at);
  ExprPtr tuple_of(const std::function<ExprPtr()>& one, std::string_view end, bool parentheses);
  ExprPtr conditional();
  ExprPtr or_expression();
  ExprPtr and_expression();
  ExprPtr not_expression();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concatenation();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filter);
  ExprPtr primary(bool with_namespace);
  ExprPtr list();
  ExprPtr dict();
  ExprPtr postfix(ExprPtr e);
  ExprPtr filter_expression(ExprPtr e);
  ExprPtr subscript(ExprPtr node);
  ExprPtr subscribed();
  void call_arguments(Expr& e);
  ExprPtr call(ExprPtr callee);
  std::string dotted_name();
  ExprPtr test(ExprPtr node);

  uint32_t nesting_ = 0;
};

}  // namespace cyb::jinja
