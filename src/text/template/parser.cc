// SPDX-License-Identifier: Apache-2.0
// Tokens to a tree: statements.
#include <algorithm>
#include <set>

#include "text/template/expression_parser.h"
#include "text/template/python_text.h"
#include "text/template/unicode.h"

namespace cyb::jinja {
namespace {

class Parser : public ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;
  Body parse() { return statements_until({}); }

 private:
  StmtPtr make_stmt(StmtKind kind, size_t at) {
    auto s = std::make_unique<Stmt>();
    s->kind = kind;
    s->at = at;
    return s;
  }

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
        auto e = std::make_unique<Expr>();
        e->kind = ExprKind::Text;
        e->at = current().at;
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
      auto name = std::make_unique<Expr>();
      name->kind = ExprKind::Name;
      name->at = token.at;
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
