// SPDX-License-Identifier: Apache-2.0
// Tokens to a tree, by jinja2's grammar.
#include <algorithm>
#include <initializer_list>
#include <set>

#include "text/template/ast.h"
#include "text/template/lexer.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

constexpr uint32_t kMaxExprDepth = 300;
constexpr uint32_t kMaxNesting = 100;
constexpr size_t kMaxTokens = 1'000'000;

using Names = std::initializer_list<std::string_view>;

class Parser {
 public:
  Parser(std::string_view source, size_t& at) : lexed_(lex(source)), at_(at) {
    if (lexed_.tokens.size() > kMaxTokens)
      fail(kLimitError, "the template has more than {} tokens", kMaxTokens);
    check();
  }

  Body parse() {
    Body body = statements_until({});
    return body;
  }

 private:
  // ---------------------------------------------------------------------------------------- tokens
  const Token& current() const { return lexed_.tokens[position_]; }

  void check() {
    if (position_ < lexed_.tokens.size()) {
      at_ = current().at;
      return;
    }
    at_ = lexed_.failure_at;
    throw *lexed_.failure;
  }

  Token next() {
    Token token = current();
    if (token.kind != Tok::Eof) {
      ++position_;
      check();
    }
    return token;
  }

  const Token& look() {
    if (position_ + 1 >= lexed_.tokens.size()) {
      at_ = lexed_.failure_at;
      throw *lexed_.failure;
    }
    return lexed_.tokens[position_ + 1];
  }

  bool is(Tok kind) const { return current().kind == kind; }
  bool is_name(std::string_view name) const { return is(Tok::Name) && current().text == name; }
  bool is_any_name(Names names) const {
    return is(Tok::Name) && std::find(names.begin(), names.end(), current().text) != names.end();
  }
  bool skip_if(Tok kind) {
    if (!is(kind)) return false;
    next();
    return true;
  }
  bool skip_if_name(std::string_view name) {
    if (!is_name(name)) return false;
    next();
    return true;
  }

  [[noreturn]] void unexpected(std::string_view expected) {
    if (is(Tok::Eof)) fail(kSyntaxError, "unexpected end of template, expected '{}'.", expected);
    fail(kSyntaxError, "expected token '{}', got {}", expected, quoted(describe(current())));
  }
  Token expect(Tok kind) {
    if (!is(kind)) unexpected(describe(kind));
    return next();
  }
  void expect_name(std::string_view name) {
    if (!is_name(name)) unexpected(name);
    next();
  }

  // ---------------------------------------------------------------------------------------- nodes
  struct Nesting {
    explicit Nesting(Parser& p) : parser(p) {
      if (++parser.nesting_ > kMaxNesting) fail(kLimitError, "nested deeper than {} levels", kMaxNesting);
    }
    ~Nesting() { --parser.nesting_; }
    Parser& parser;
  };

  ExprPtr make(ExprKind kind, size_t at) {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->at = at;
    return e;
  }

  // To be called when all children are there.
  ExprPtr done(ExprPtr e) {
    uint32_t depth = 0;
    e->for_each_child([&](const Expr& child) { depth = std::max(depth, child.depth); });
    e->depth = depth + 1;
    if (e->depth > kMaxExprDepth) fail(kLimitError, "an expression of more than {} levels", kMaxExprDepth);
    return e;
  }

  ExprPtr binary(ExprKind kind, Op op, ExprPtr left, ExprPtr right, size_t at) {
    auto e = make(kind, at);
    e->op = op;
    e->node = std::move(left);
    e->right = std::move(right);
    return done(std::move(e));
  }

  StmtPtr make_stmt(StmtKind kind, size_t at) {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->at = at;
    return s;
  }

  // ---------------------------------------------------------------------------------------- statements
  Body statements_until(const std::vector<std::string>& ends) {
    Nesting nesting(*this);
    if (!ends.empty()) end_stack_.push_back(ends);
    Body body;
    StmtPtr output;
    auto add = [&](ExprPtr e) {
      if (!output) output = make_stmt(StmtKind::Output, e->at);
      output->items.push_back(std::move(e));
    };
    auto flush = [&] {
      if (output) body.push_back(std::move(output));
      output = nullptr;
    };
    while (!is(Tok::Eof)) {
      if (is(Tok::Data)) {
        auto e = make(ExprKind::Text, current().at);
        e->text = current().text;
        add(std::move(e));
        next();
      } else if (is(Tok::VariableBegin)) {
        next();
        add(tuple());
        expect(Tok::VariableEnd);
      } else {
        flush();
        next();
        if (std::any_of(ends.begin(), ends.end(), [&](const std::string& end) { return is_name(end); })) {
          end_stack_.pop_back();
          return body;
        }
        if (StmtPtr s = statement()) body.push_back(std::move(s));
        expect(Tok::BlockEnd);
      }
    }
    flush();
    if (!ends.empty()) {
      fail_end(nullptr);
    }
    return body;
  }

  // The statements up to one of these tags, which is then the current token, or dropped.
  Body block(const std::vector<std::string>& ends, bool drop) {
    skip_if(Tok::Colon);
    expect(Tok::BlockEnd);
    Body body = statements_until(ends);
    if (drop) next();
    return body;
  }

  [[noreturn]] void fail_end(const std::string* unknown) {
    std::string message = unknown ? fmt::format("Encountered unknown tag {}.", quoted(*unknown))
                                  : "Unexpected end of template.";
    if (!end_stack_.empty()) {
      std::string looking;
      for (const auto& end : end_stack_.back()) looking += (looking.empty() ? "" : " or ") + quoted(end);
      bool elsewhere = unknown && std::any_of(end_stack_.begin(), end_stack_.end(), [&](const auto& ends) {
                         return std::find(ends.begin(), ends.end(), *unknown) != ends.end();
                       });
      message += elsewhere ? fmt::format(
                                 " You probably made a nesting mistake. Jinja is expecting this tag, but "
                                 "currently looking for {}.",
                                 looking)
                           : fmt::format(" Jinja was looking for the following tags: {}.", looking);
    }
    if (!tag_stack_.empty())
      message +=
          fmt::format(" The innermost block that needs to be closed is {}.", quoted(tag_stack_.back()));
    throw Failure{kSyntaxError, message};
  }

  StmtPtr statement() {
    if (!is(Tok::Name)) fail(kSyntaxError, "tag name expected");
    std::string tag = current().text;
    size_t start = current().at;
    tag_stack_.push_back(tag);
    StmtPtr s = statement_of(tag, start);
    tag_stack_.pop_back();
    return s;
  }

  StmtPtr statement_of(const std::string& tag, size_t start) {
    if (tag == "for") return for_statement();
    if (tag == "if") return if_statement();
    if (tag == "set") return set_statement();
    if (tag == "macro") return macro();
    if (tag == "call") return call_block();
    if (tag == "filter") return filter_block();
    if (tag == "generation") return generation();
    if (tag == "with") return with();
    if (tag == "print") return print();
    if (tag == "block") return named_block();
    if (tag == "extends" || tag == "include" || tag == "import" || tag == "from") return loader(tag);
    if (tag == "autoescape") fail(kUnsupported, "the tag 'autoescape'");
    if (tag == "break" || tag == "continue") {
      next();
      if (loops_ == 0) fail(kSyntaxError, "'{}' outside loop", tag);
      return make_stmt(tag == "break" ? StmtKind::Break : StmtKind::Continue, start);
    }
    tag_stack_.pop_back();
    fail_end(&tag);
  }

  // A body that Python would compile as a function of its own: break and continue do not reach out of it.
  Body function_body(const std::vector<std::string>& ends) {
    uint32_t loops = std::exchange(loops_, 0);
    Body body = block(ends, true);
    loops_ = loops;
    return body;
  }

  StmtPtr for_statement() {
    auto s = make_stmt(StmtKind::For, next().at);
    size_t target_start = position_;
    s->target = assign_target(false, "in");
    size_t target_end = position_;
    expect_name("in");
    s->node = tuple(false, "recursive");
    if (skip_if_name("if")) {
      s->test = expression();
      // The filter has a frame of its own, and the target a place in it.
      size_t resume = std::exchange(position_, target_start);
      s->test_target = assign_target(false, "in");
      if (position_ != target_end) fail(kSyntaxError, "unexpected target of a for loop");
      position_ = resume;
      check();
    }
    s->recursive = skip_if_name("recursive");
    ++loops_;
    s->body = block({"endfor", "else"}, false);
    --loops_;
    bool has_else = is_name("else");
    next();
    if (has_else) s->otherwise = block({"endfor"}, true);
    return s;
  }

  StmtPtr if_statement() {
    auto s = make_stmt(StmtKind::If, next().at);
    Stmt* branch = s.get();
    for (;;) {
      branch->node = tuple(false);
      branch->body = block({"elif", "else", "endif"}, false);
      Token token = next();
      if (token.text == "elif") {
        s->elifs.push_back(make_stmt(StmtKind::If, current().at));
        branch = s->elifs.back().get();
        continue;
      }
      if (token.text == "else") s->otherwise = block({"endif"}, true);
      return s;
    }
  }

  StmtPtr set_statement() {
    size_t start = next().at;
    ExprPtr target = assign_target(true);
    if (skip_if(Tok::Assign)) {
      auto s = make_stmt(StmtKind::Assign, start);
      s->target = std::move(target);
      s->node = tuple();
      return s;
    }
    auto s = make_stmt(StmtKind::AssignBlock, start);
    s->target = std::move(target);
    s->node = filters(nullptr, false);
    s->body = block({"endset"}, true);
    return s;
  }

  void signature(Stmt& s) {
    expect(Tok::LParen);
    while (!is(Tok::RParen)) {
      if (!s.items.empty()) expect(Tok::Comma);
      Token token = expect(Tok::Name);
      auto name = make(ExprKind::Name, token.at);
      name->text = token.text;
      name->use = Use::Param;
      if (skip_if(Tok::Assign)) {
        s.values.push_back(expression());
      } else if (!s.values.empty()) {
        fail(kSyntaxError, "non-default argument follows default argument");
      }
      s.items.push_back(std::move(name));
    }
    expect(Tok::RParen);
    std::set<std::string> seen;
    for (const auto& p : s.items) {
      if (!seen.insert(p->text).second)
        fail(kSyntaxError, "duplicate argument '{}' in function definition", p->text);
    }
  }

  StmtPtr macro() {
    auto s = make_stmt(StmtKind::Macro, next().at);
    s->name = expect(Tok::Name).text;
    signature(*s);
    s->body = function_body({"endmacro"});
    return s;
  }

  StmtPtr call_block() {
    auto s = make_stmt(StmtKind::CallBlock, next().at);
    if (is(Tok::LParen)) signature(*s);
    s->node = expression();
    if (s->node->kind != ExprKind::Call) fail(kSyntaxError, "expected call");
    s->body = function_body({"endcall"});
    return s;
  }

  StmtPtr filter_block() {
    auto s = make_stmt(StmtKind::FilterBlock, next().at);
    s->node = filters(nullptr, true);
    s->body = block({"endfilter"}, true);
    return s;
  }

  StmtPtr generation() {
    auto s = make_stmt(StmtKind::Generation, next().at);
    s->body = function_body({"endgeneration"});
    return s;
  }

  StmtPtr with() {
    auto s = make_stmt(StmtKind::With, next().at);
    while (!is(Tok::BlockEnd)) {
      if (!s->items.empty()) expect(Tok::Comma);
      ExprPtr target = assign_target(false);
      set_use(*target, Use::Param);
      s->items.push_back(std::move(target));
      expect(Tok::Assign);
      s->values.push_back(expression());
    }
    s->body = block({"endwith"}, true);
    return s;
  }

  StmtPtr print() {
    auto s = make_stmt(StmtKind::Output, next().at);
    while (!is(Tok::BlockEnd)) {
      if (!s->items.empty()) expect(Tok::Comma);
      s->items.push_back(expression());
    }
    return s;
  }

  StmtPtr named_block() {
    auto s = make_stmt(StmtKind::Block, next().at);
    s->name = expect(Tok::Name).text;
    if (is_name("scoped") || is_name("required")) fail(kUnsupported, "a block that is '{}'", current().text);
    if (is(Tok::Sub)) {
      fail(kSyntaxError,
           "Block names in Jinja have to be valid Python identifiers and may not contain hyphens, use an "
           "underscore instead.");
    }
    s->body = function_body({"endblock"});
    skip_if_name(s->name);
    if (!block_names_.insert(s->name).second)
      fail(kAssertionError, "block {} defined twice", quoted(s->name));
    return s;
  }

  // There are no other templates: these tags fail when they are reached, as they do without a loader.
  StmtPtr loader(const std::string& tag) {
    auto s = make_stmt(StmtKind::Loader, next().at);
    s->name = tag;
    s->node = expression();
    while (!is(Tok::BlockEnd) && !is(Tok::Eof)) next();
    return s;
  }

  // ---------------------------------------------------------------------------------------- targets
  static void set_use(Expr& e, Use use) {
    e.use = use;
    if (e.kind == ExprKind::Tuple) {
      for (auto& item : e.items) set_use(*item, use);
    }
  }

  static bool can_assign(const Expr& e) {
    if (e.kind == ExprKind::Tuple)
      return std::all_of(e.items.begin(), e.items.end(), [](const auto& i) { return can_assign(*i); });
    static const std::set<std::string> constants = {"true", "false", "none", "True", "False", "None"};
    return e.kind == ExprKind::NsRef || (e.kind == ExprKind::Name && !constants.contains(e.text));
  }

  static const char* node_name(ExprKind kind) {
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

  ExprPtr assign_target(bool with_namespace, std::string_view end = {}) {
    ExprPtr target = tuple_of([&] { return primary(with_namespace); }, end, false);
    set_use(*target, Use::Store);
    if (!can_assign(*target)) fail(kSyntaxError, "can't assign to '{}'", node_name(target->kind));
    return target;
  }

  // ---------------------------------------------------------------------------------------- expressions
  ExprPtr tuple(bool with_condition = true, std::string_view end = {}) {
    return tuple_of([&] { return expression(with_condition); }, end, false);
  }

  template <class One>
  ExprPtr tuple_of(One one, std::string_view end, bool parentheses) {
    size_t start = current().at;
    std::vector<ExprPtr> items;
    bool is_tuple = false;
    for (;;) {
      if (!items.empty()) expect(Tok::Comma);
      if (is(Tok::VariableEnd) || is(Tok::BlockEnd) || is(Tok::RParen) || (!end.empty() && is_name(end)))
        break;
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

  ExprPtr expression(bool with_condition = true) {
    Nesting nesting(*this);
    return with_condition ? conditional() : or_expression();
  }

  ExprPtr conditional() {
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

  ExprPtr or_expression() {
    ExprPtr left = and_expression();
    while (is_name("or")) {
      size_t at = next().at;
      left = binary(ExprKind::Or, Op::Add, std::move(left), and_expression(), at);
    }
    return left;
  }

  ExprPtr and_expression() {
    ExprPtr left = not_expression();
    while (is_name("and")) {
      size_t at = next().at;
      left = binary(ExprKind::And, Op::Add, std::move(left), not_expression(), at);
    }
    return left;
  }

  ExprPtr not_expression() {
    if (!is_name("not")) return comparison();
    Nesting nesting(*this);
    auto e = make(ExprKind::Not, next().at);
    e->node = not_expression();
    return done(std::move(e));
  }

  ExprPtr comparison() {
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

  ExprPtr sum() {
    ExprPtr left = concatenation();
    while (is(Tok::Add) || is(Tok::Sub)) {
      Token token = next();
      left = binary(ExprKind::Binary, token.kind == Tok::Add ? Op::Add : Op::Sub, std::move(left),
                    concatenation(), token.at);
    }
    return left;
  }

  ExprPtr concatenation() {
    ExprPtr first = product();
    if (!is(Tok::Tilde)) return first;
    auto e = make(ExprKind::Concat, first->at);
    e->items.push_back(std::move(first));
    while (skip_if(Tok::Tilde)) e->items.push_back(product());
    return done(std::move(e));
  }

  ExprPtr product() {
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

  ExprPtr power() {
    ExprPtr left = unary(true);
    while (is(Tok::Pow)) {
      size_t at = next().at;
      left = binary(ExprKind::Binary, Op::Pow, std::move(left), unary(true), at);
    }
    return left;
  }

  ExprPtr unary(bool with_filter) {
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

  ExprPtr primary(bool with_namespace) {
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

  ExprPtr list() {
    auto e = make(ExprKind::List, expect(Tok::LBracket).at);
    while (!is(Tok::RBracket)) {
      if (!e->items.empty()) expect(Tok::Comma);
      if (is(Tok::RBracket)) break;
      e->items.push_back(expression());
    }
    expect(Tok::RBracket);
    return done(std::move(e));
  }

  ExprPtr dict() {
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

  ExprPtr postfix(ExprPtr e) {
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

  ExprPtr filter_expression(ExprPtr e) {
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

  ExprPtr subscript(ExprPtr node) {
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

  ExprPtr subscribed() {
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

  void call_arguments(Expr& e) {
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

  ExprPtr call(ExprPtr callee) {
    auto e = make(ExprKind::Call, current().at);
    call_arguments(*e);
    e->node = std::move(callee);
    return done(std::move(e));
  }

  std::string dotted_name() {
    std::string name = expect(Tok::Name).text;
    while (skip_if(Tok::Dot)) name += "." + expect(Tok::Name).text;
    return name;
  }

  ExprPtr filters(ExprPtr node, bool inline_start) {
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

  ExprPtr test(ExprPtr node) {
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

  LexResult lexed_;
  size_t position_ = 0;
  size_t& at_;
  uint32_t nesting_ = 0;
  uint32_t loops_ = 0;
  std::vector<std::vector<std::string>> end_stack_;
  std::vector<std::string> tag_stack_;
  std::set<std::string> block_names_;
};

}  // namespace

Position position_of(const Tree& tree, size_t at) {
  at = std::min(at, tree.source.size());
  auto line = std::upper_bound(tree.lines.begin(), tree.lines.end(), at) - tree.lines.begin();
  size_t start = tree.lines[static_cast<size_t>(line) - 1];
  return {static_cast<size_t>(line),
          count_code_points(std::string_view(tree.source).substr(start, at - start)) + 1};
}

void set_source(Tree& tree, std::string_view source) {
  tree.source = normalise_source(source);
  tree.lines = {0};
  for (size_t i = 0; i < tree.source.size(); ++i) {
    if (tree.source[i] == '\n') tree.lines.push_back(i + 1);
  }
}

void parse_tree(Tree& tree, size_t& at) {
  tree.body = Parser(tree.source, at).parse();
  resolve_names(tree, at);
}

}  // namespace cyb::jinja
