// SPDX-License-Identifier: Apache-2.0
// Expressions, by jinja2's grammar.
#include "text/template/expression_parser.h"

#include <algorithm>
#include <set>

#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

constexpr uint32_t kMaxExprDepth = 300;
constexpr uint32_t kMaxNesting = 100;

bool can_assign(const Expr& e) {
  if (e.kind == ExprKind::Tuple)
    return std::all_of(e.items.begin(), e.items.end(), [](const auto& i) { return can_assign(*i); });
  static const std::set<std::string> constants = {"true", "false", "none", "True", "False", "None"};
  return e.kind == ExprKind::NsRef || (e.kind == ExprKind::Name && !constants.contains(e.text));
}

const char* node_name(ExprKind kind) {
  switch (kind) {
    case ExprKind::List:
      return "list";
    case ExprKind::Dict:
      return "dict";
    case ExprKind::Tuple:
      return "tuple";
    case ExprKind::Name:
      return "name";
    default:
      return "const";
  }
}

}  // namespace

ExpressionParser::Nesting::Nesting(ExpressionParser& p) : parser(p) {
  if (++parser.nesting_ > kMaxNesting) fail(kLimitError, "nested deeper than {} levels", kMaxNesting);
}

ExprPtr ExpressionParser::make(ExprKind kind, size_t at) {
  auto e = std::make_unique<Expr>();
  e->kind = kind;
  e->at = at;
  return e;
}

ExprPtr ExpressionParser::done(ExprPtr e) {
  uint32_t depth = 0;
  e->for_each_child([&](const Expr& child) { depth = std::max(depth, child.depth); });
  e->depth = depth + 1;
  if (e->depth > kMaxExprDepth) fail(kLimitError, "an expression of more than {} levels", kMaxExprDepth);
  return e;
}

ExprPtr ExpressionParser::binary(ExprKind kind, Op op, ExprPtr left, ExprPtr right, size_t at) {
  auto e = make(kind, at);
  e->op = op;
  e->node = std::move(left);
  e->right = std::move(right);
  return done(std::move(e));
}

void ExpressionParser::set_use(Expr& e, Use use) {
  e.use = use;
  if (e.kind == ExprKind::Tuple) {
    for (auto& item : e.items) set_use(*item, use);
  }
}

ExprPtr ExpressionParser::assign_target(bool with_namespace, std::string_view end) {
  ExprPtr target = tuple_of([&] { return primary(with_namespace); }, end, false);
  set_use(*target, Use::Store);
  if (!can_assign(*target)) fail(kSyntaxError, "can't assign to '{}'", node_name(target->kind));
  return target;
}

ExprPtr ExpressionParser::tuple(bool with_condition, std::string_view end) {
  return tuple_of([&] { return expression(with_condition); }, end, false);
}

ExprPtr ExpressionParser::tuple_of(const std::function<ExprPtr()>& one, std::string_view end,
                                   bool parentheses) {
  size_t start = current().at;
  std::vector<ExprPtr> items;
  bool is_tuple = false;
  for (;;) {
    if (!items.empty()) expect(Tok::Comma);
    if (is(Tok::VariableEnd) || is(Tok::BlockEnd) || is(Tok::RParen) || (!end.empty() && is_name(end))) break;
    items.push_back(one());
    if (!is(Tok::Comma)) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!items.empty()) return std::move(items[0]);
    if (!parentheses) fail(kSyntaxError, "Expected an expression, got {}", quoted(describe(current())));
  }
  auto e = make(ExprKind::Tuple, start);
  e->items = std::move(items);
  return done(std::move(e));
}

ExprPtr ExpressionParser::expression(bool with_condition) {
  Nesting nesting(*this);
  return with_condition ? conditional() : or_expression();
}

ExprPtr ExpressionParser::conditional() {
  Nesting nesting(*this);
  size_t start = current().at;
  ExprPtr e = or_expression();
  while (is_name("if")) {
    next();
    auto cond = make(ExprKind::Cond, start);
    cond->node = std::move(e);
    cond->right = or_expression();
    if (skip_if_name("else")) cond->third = conditional();
    e = done(std::move(cond));
    start = current().at;
  }
  return e;
}

ExprPtr ExpressionParser::or_expression() {
  ExprPtr left = and_expression();
  while (is_name("or")) {
    size_t at = next().at;
    left = binary(ExprKind::Or, Op::Add, std::move(left), and_expression(), at);
  }
  return left;
}

ExprPtr ExpressionParser::and_expression() {
  ExprPtr left = not_expression();
  while (is_name("and")) {
    size_t at = next().at;
    left = binary(ExprKind::And, Op::Add, std::move(left), not_expression(), at);
  }
  return left;
}

ExprPtr ExpressionParser::not_expression() {
  if (!is_name("not")) return comparison();
  Nesting nesting(*this);
  auto e = make(ExprKind::Not, next().at);
  e->node = not_expression();
  return done(std::move(e));
}

ExprPtr ExpressionParser::comparison() {
  ExprPtr first = sum();
  auto e = make(ExprKind::Compare, first->at);
  for (;;) {
    Op op;
    if (is(Tok::Eq)) {
      op = Op::Eq;
    } else if (is(Tok::Ne)) {
      op = Op::Ne;
    } else if (is(Tok::Lt)) {
      op = Op::Lt;
    } else if (is(Tok::LtEq)) {
      op = Op::LtEq;
    } else if (is(Tok::Gt)) {
      op = Op::Gt;
    } else if (is(Tok::GtEq)) {
      op = Op::GtEq;
    } else if (is_name("in")) {
      op = Op::In;
    } else if (is_name("not") && look().kind == Tok::Name && look().text == "in") {
      next();
      op = Op::NotIn;
    } else {
      break;
    }
    if (e->ops.empty()) e->at = current().at;
    next();
    e->ops.push_back(op);
    e->items.push_back(sum());
  }
  if (e->ops.empty()) return first;
  e->node = std::move(first);
  return done(std::move(e));
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concatenation();
  while (is(Tok::Add) || is(Tok::Sub)) {
    Token token = next();
    left = binary(ExprKind::Binary, token.kind == Tok::Add ? Op::Add : Op::Sub, std::move(left),
                  concatenation(), token.at);
  }
  return left;
}

ExprPtr ExpressionParser::concatenation() {
  ExprPtr first = product();
  if (!is(Tok::Tilde)) return first;
  auto e = make(ExprKind::Concat, first->at);
  e->items.push_back(std::move(first));
  while (skip_if(Tok::Tilde)) e->items.push_back(product());
  return done(std::move(e));
}

ExprPtr ExpressionParser::product() {
  ExprPtr left = power();
  for (;;) {
    Op op;
    if (is(Tok::Mul)) {
      op = Op::Mul;
    } else if (is(Tok::Div)) {
      op = Op::Div;
    } else if (is(Tok::FloorDiv)) {
      op = Op::FloorDiv;
    } else if (is(Tok::Mod)) {
      op = Op::Mod;
    } else {
      return left;
    }
    size_t at = next().at;
    left = binary(ExprKind::Binary, op, std::move(left), power(), at);
  }
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary(true);
  while (is(Tok::Pow)) {
    size_t at = next().at;
    left = binary(ExprKind::Binary, Op::Pow, std::move(left), unary(true), at);
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filter) {
  ExprPtr e;
  if (is(Tok::Sub) || is(Tok::Add)) {
    Nesting nesting(*this);
    Token token = next();
    e = make(ExprKind::Unary, token.at);
    e->op = token.kind == Tok::Sub ? Op::Neg : Op::Pos;
    e->node = unary(false);
    e = done(std::move(e));
  } else {
    e = primary(false);
  }
  e = postfix(std::move(e));
  return with_filter ? filter_expression(std::move(e)) : std::move(e);
}

ExprPtr ExpressionParser::primary(bool with_namespace) {
  Nesting nesting(*this);
  size_t at = current().at;
  switch (current().kind) {
    case Tok::Name: {
      std::string name = next().text;
      if (name == "true" || name == "True") return make(ExprKind::True, at);
      if (name == "false" || name == "False") return make(ExprKind::False, at);
      if (name == "none" || name == "None") return make(ExprKind::None, at);
      if (with_namespace && is(Tok::Dot)) {
        next();
        auto e = make(ExprKind::NsRef, at);
        e->text = name;
        e->attribute = expect(Tok::Name).text;
        return e;
      }
      auto e = make(ExprKind::Name, at);
      e->text = name;
      return e;
    }
    case Tok::String: {
      auto e = make(ExprKind::String, at);
      while (is(Tok::String)) e->text += next().text;
      return e;
    }
    case Tok::Integer: {
      auto e = make(ExprKind::Integer, at);
      e->integer = next().integer;
      return e;
    }
    case Tok::Float: {
      auto e = make(ExprKind::Float, at);
      e->real = next().real;
      return e;
    }
    case Tok::LParen: {
      next();
      ExprPtr e = tuple_of([&] { return expression(); }, {}, true);
      expect(Tok::RParen);
      return e;
    }
    case Tok::LBracket:
      return list();
    case Tok::LBrace:
      return dict();
    default:
      fail(kSyntaxError, "unexpected {}", quoted(describe(current())));
  }
}

ExprPtr ExpressionParser::list() {
  auto e = make(ExprKind::List, expect(Tok::LBracket).at);
  while (!is(Tok::RBracket)) {
    if (!e->items.empty()) expect(Tok::Comma);
    if (is(Tok::RBracket)) break;
    e->items.push_back(expression());
  }
  expect(Tok::RBracket);
  return done(std::move(e));
}

ExprPtr ExpressionParser::dict() {
  auto e = make(ExprKind::Dict, expect(Tok::LBrace).at);
  while (!is(Tok::RBrace)) {
    if (!e->items.empty()) expect(Tok::Comma);
    if (is(Tok::RBrace)) break;
    e->items.push_back(expression());
    expect(Tok::Colon);
    e->items.push_back(expression());
  }
  expect(Tok::RBrace);
  return done(std::move(e));
}

ExprPtr ExpressionParser::postfix(ExprPtr e) {
  for (;;) {
    if (is(Tok::Dot) || is(Tok::LBracket)) {
      e = subscript(std::move(e));
    } else if (is(Tok::LParen)) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr ExpressionParser::filter_expression(ExprPtr e) {
  for (;;) {
    if (is(Tok::Pipe)) {
      e = filters(std::move(e), false);
    } else if (is_name("is")) {
      e = test(std::move(e));
    } else if (is(Tok::LParen)) {
      e = call(std::move(e));
    } else {
      return e;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr node) {
  Token token = next();
  if (token.kind == Tok::Dot) {
    Token attribute = next();
    if (attribute.kind == Tok::Name) {
      auto e = make(ExprKind::Getattr, attribute.at);
      e->text = attribute.text;
      e->node = std::move(node);
      return done(std::move(e));
    }
    if (attribute.kind != Tok::Integer) fail(kSyntaxError, "expected name or number");
    auto index = make(ExprKind::Integer, attribute.at);
    index->integer = attribute.integer;
    return binary(ExprKind::Getitem, Op::Add, std::move(node), std::move(index), token.at);
  }
  std::vector<ExprPtr> items;
  while (!is(Tok::RBracket)) {
    if (!items.empty()) expect(Tok::Comma);
    items.push_back(subscribed());
  }
  expect(Tok::RBracket);
  ExprPtr index;
  if (items.size() == 1) {
    index = std::move(items[0]);
  } else {
    index = make(ExprKind::Tuple, token.at);
    for (const auto& item : items) {
      if (item->kind == ExprKind::Slice) fail(kSyntaxError, "a slice among several subscripts");
    }
    index->items = std::move(items);
    index = done(std::move(index));
  }
  return binary(ExprKind::Getitem, Op::Add, std::move(node), std::move(index), token.at);
}

ExprPtr ExpressionParser::subscribed() {
  size_t at = current().at;
  ExprPtr start;
  if (!is(Tok::Colon)) {
    start = expression();
    if (!is(Tok::Colon)) return start;
  }
  next();
  auto e = make(ExprKind::Slice, at);
  e->node = std::move(start);
  if (!is(Tok::Colon) && !is(Tok::RBracket) && !is(Tok::Comma)) e->right = expression();
  if (skip_if(Tok::Colon) && !is(Tok::RBracket) && !is(Tok::Comma)) e->third = expression();
  return done(std::move(e));
}

void ExpressionParser::call_arguments(Expr& e) {
  size_t at = expect(Tok::LParen).at;
  auto ensure = [&](bool condition) {
    if (condition) return;
    at_ = at;
    fail(kSyntaxError, "invalid syntax for function call expression");
  };
  bool comma = false;
  while (!is(Tok::RParen)) {
    if (comma) {
      expect(Tok::Comma);
      if (is(Tok::RParen)) break;
    }
    if (is(Tok::Mul)) {
      ensure(!e.star && !e.star_star);
      next();
      e.star = expression();
    } else if (is(Tok::Pow)) {
      ensure(!e.star_star);
      next();
      e.star_star = expression();
    } else if (is(Tok::Name) && look().kind == Tok::Assign) {
      ensure(!e.star_star);
      std::string name = next().text;
      next();
      for (const auto& n : e.named) {
        if (n.name == name) fail(kSyntaxError, "keyword argument repeated: {}", name);
      }
      e.named.push_back({std::move(name), expression()});
    } else {
      ensure(!e.star && !e.star_star && e.named.empty());
      e.items.push_back(expression());
    }
    comma = true;
  }
  expect(Tok::RParen);
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  auto e = make(ExprKind::Call, current().at);
  call_arguments(*e);
  e->node = std::move(callee);
  return done(std::move(e));
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect(Tok::Name).text;
  while (skip_if(Tok::Dot)) name += "." + expect(Tok::Name).text;
  return name;
}

ExprPtr ExpressionParser::filters(ExprPtr node, bool inline_start) {
  while (is(Tok::Pipe) || inline_start) {
    if (!inline_start) next();
    inline_start = false;
    auto e = make(ExprKind::Filter, current().at);
    e->text = dotted_name();
    if (is(Tok::LParen)) call_arguments(*e);
    e->node = std::move(node);
    node = done(std::move(e));
  }
  return node;
}

ExprPtr ExpressionParser::test(ExprPtr node) {
  size_t at = next().at;
  bool negated = skip_if_name("not");
  auto e = make(ExprKind::Test, current().at);
  e->text = dotted_name();
  if (is(Tok::LParen)) {
    call_arguments(*e);
  } else if ((is(Tok::Name) || is(Tok::String) || is(Tok::Integer) || is(Tok::Float) || is(Tok::LBracket) ||
              is(Tok::LBrace)) &&
             !is_any_name({"else", "or", "and"})) {
    if (is_name("is")) fail(kSyntaxError, "You cannot chain multiple tests with is");
    e->items.push_back(postfix(primary(false)));
  }
  e->node = std::move(node);
  ExprPtr result = done(std::move(e));
  if (!negated) return result;
  auto inverse = make(ExprKind::Not, at);
  inverse->node = std::move(result);
  return done(std::move(inverse));
}

}  // namespace cyb::jinja
