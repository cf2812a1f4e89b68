// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "ir/fold_lines.h"
#include "ir/infer.h"
#include "ir/lexer.h"
#include "ir/read_values.h"
#include "ir/text.h"

namespace cyb::ir {
namespace {

// A graph while it is read, with its values by name.
struct Scope {
  Graph* graph = nullptr;
  Scope* outer = nullptr;
  std::unordered_map<std::string, ValueId> names;
  struct Output {
    std::string name, value;
    bool weight;
    Type type;
    int line, column;
  };
  std::vector<Output> outputs;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& where, const WeightTypes& weight_types)
      : where_(where), weight_types_(weight_types), lines_(unfold_lines(text, where)) {}

  Program run() {
    while (at_ < lines_.size() && Lexer(lines_[at_].text, lines_[at_].number, where_).at_end()) at_++;
    const bool none = at_ >= lines_.size();
    Lexer first(none ? std::string_view() : std::string_view(lines_[at_].text), none ? 1 : lines_[at_].number,
                where_);
    if (!first.is_word("ir")) first.fail("'ir 1' in the first line");
    first.next();
    if (const int64_t version = first.expect_integer(); version != 1)
      first.fail_at(1, fmt::format("version {} of the text form; this program reads version 1", version));
    first.expect_end();
    for (at_++; at_ < lines_.size();) {
      Lexer lex(lines_[at_].text, lines_[at_].number, where_);
      if (lex.at_end()) {
        at_++;
      } else if (lex.is_word("state")) {
        state(lex);
        at_++;
      } else if (lex.is_word("weight")) {
        weight(lex);
        at_++;
      } else if (lex.is_word("graph")) {
        graph(lex);
      } else {
        lex.fail("'state', 'weight' or 'graph'");
      }
    }
    return std::move(program_);
  }

 private:
  std::string name(Lexer& lex, const char* what) {
    if (lex.peek().kind == Token::Kind::value) return lex.next().text;
    return lex.expect_word(what);
  }

  void state(Lexer& lex) {
    lex.next();
    State s;
    const int column = lex.peek().column;
    s.name = name(lex, "the state's name");
    if (program_.find_state(s.name) >= 0) lex.fail_at(column, "state '" + s.name + "' is declared twice");
    lex.expect(":");
    const std::string kind = lex.expect_word("kv or tensor");
    lex.expect("(");
    if (kind == "kv") {
      for (bool first = true; !lex.accept(")"); first = false) {
        if (!first) lex.expect(",");
        const std::string key = lex.expect_word("heads, k_dim, v_dim or window");
        lex.expect("=");
        const int64_t v = lex.expect_integer();
        if (v < 0 || v > (int64_t{1} << 30))
          lex.fail_at(column, fmt::format("{} = {} is out of range", key, v));
        if (key == "heads")
          s.heads = v;
        else if (key == "k_dim")
          s.k_dim = v;
        else if (key == "v_dim")
          s.v_dim = v;
        else if (key == "window")
          s.window = v;
        else
          lex.fail_at(column, "unknown key '" + key + "': expected heads, k_dim, v_dim or window");
      }
      if (s.heads < 1 || s.k_dim < 1 || s.v_dim < 1)
        lex.fail_at(column, "a kv state needs heads, k_dim and v_dim");
    } else if (kind == "tensor") {
      s.kind = State::Kind::tensor;
      s.type = read_type(lex, program_);
      lex.expect(")");
    } else {
      lex.fail_at(column, "expected kv or tensor, found '" + kind + "'");
    }
    lex.expect_end();
    program_.states.push_back(std::move(s));
  }

  void weight(Lexer& lex) {
    lex.next();
    if (lex.peek().kind != Token::Kind::weight) lex.fail("@name");
    const std::string weight_name = lex.next().text;
    lex.expect(":");
    weights_[weight_name] = read_type(lex, program_);
    lex.expect_end();
  }

  // (inputs) -> (outputs)
  void signature(Lexer& lex, Scope& scope) {
    lex.expect("(");
    for (bool first = true; !lex.accept(")"); first = false) {
      if (!first) lex.expect(",");
      const int column = lex.peek().column;
      const std::string input = name(lex, "an input's name");
      lex.expect(":");
      const Type t = read_type(lex, program_);
      if (scope.names.contains(input)) lex.fail_at(column, "'" + input + "' is named twice");
      scope.names[input] = scope.graph->add_input(input, t);
    }
    lex.expect("->");
    lex.expect("(");
    for (bool first = true; !lex.accept(")"); first = false) {
      if (!first) lex.expect(",");
      Scope::Output out{"", "", false, {}, lex.number(), lex.peek().column};
      out.name = out.value = name(lex, "an output's name");
      if (lex.accept("=")) {
        out.weight = lex.peek().kind == Token::Kind::weight;
        out.value = out.weight ? lex.next().text : name(lex, "a value");
      }
      lex.expect(":");
      out.type = read_type(lex, program_);
      scope.outputs.push_back(std::move(out));
    }
    lex.expect_end();
  }

  void graph(Lexer& lex) {
    lex.next();
    program_.graphs.emplace_back();
    Graph& g = program_.graphs.back();
    const int column = lex.peek().column;
    g.name = name(lex, "the graph's name");
    for (size_t i = 0; i + 1 < program_.graphs.size(); i++)
      if (program_.graphs[i].name == g.name) lex.fail_at(column, "graph '" + g.name + "' is defined twice");
    Scope scope;
    scope.graph = &g;
    signature(lex, scope);
    at_++;
    while (at_ < lines_.size()) {
      Lexer l(lines_[at_].text, lines_[at_].number, where_);
      if (l.is_word("graph") || l.is_word("state") || l.is_word("weight")) break;
      if (l.at_end())
        at_++;
      else
        statement(l, scope, 0);
    }
    finish(scope);
  }

  void finish(Scope& scope) {
    for (const Scope::Output& out : scope.outputs) {
      ValueId id = kNone;
      if (out.weight)
        id = weight_value(scope, out.value, out.line, out.column);
      else
        id = resolve(scope, out.value);
      if (id == kNone)
        throw error(ErrorKind::InvalidFile, "{}, line {}, column {}: output '{}' is not defined", where_,
                    out.line, out.column, out.value);
      const Type& have = scope.graph->value(id).type;
      if (!compatible(have, out.type))
        throw error(ErrorKind::ShapeMismatch, "{}, line {}, column {}: output '{}' is {}, not {}", where_,
                    out.line, out.column, out.name, to_string(have, program_.symbols),
                    to_string(out.type, program_.symbols));
      refine(scope.graph->value(id).type, out.type);
      scope.graph->add_output(out.name, id);
    }
  }

  // Whether a value of type `have` may be declared as `said`.
  static bool compatible(const Type& have, const Type& said) {
    if (have.dtype != said.dtype) return false;
    if (!have.known_rank || !said.known_rank) return true;
    if (have.rank() != said.rank()) return false;
    for (size_t i = 0; i < have.dims.size(); i++)
      if (have.dims[i].is_number() && said.dims[i].is_number() && !(have.dims[i] == said.dims[i]))
        return false;
    return true;
  }
  // What was not known takes what is said.
  static void refine(Type& have, const Type& said) {
    if (!said.known_rank) return;
    if (!have.known_rank) {
      have = said;
      return;
    }
    for (size_t i = 0; i < have.dims.size(); i++)
      if (have.dims[i].is_unknown()) have.dims[i] = said.dims[i];
  }

  ValueId resolve(Scope& scope, const std::string& value) {
    if (const auto it = scope.names.find(value); it != scope.names.end()) return it->second;
    if (!scope.outer) return kNone;
    const ValueId outer = resolve(*scope.outer, value);
    if (outer == kNone) return kNone;
    const Value source = scope.outer->graph->value(outer);
    const ValueId id = scope.graph->add_outer(outer, source);
    scope.names[value] = id;
    return id;
  }

  ValueId weight_value(Scope& scope, const std::string& weight_name, int line, int column) {
    const Type* t = nullptr;
    if (const auto it = weights_.find(weight_name); it != weights_.end())
      t = &it->second;
    else if (weight_types_)
      t = weight_types_(weight_name);
    if (!t)
      throw error(ErrorKind::MissingTensor, "{}, line {}, column {}: no tensor '{}'", where_, line, column,
                  weight_name)
          .advise("declare it: weight @{}: f32[…]", weight_name);
    return scope.graph->add_weight(weight_name, *t);
  }

  // One node or constant, with its regions; moves `at_` behind it.
  void statement(Lexer& lex, Scope& scope, int depth) {
    Graph& g = *scope.graph;
    std::vector<std::pair<std::string, int>> results;
    // `a, b = op(…)`, or `op(…)` alone.
    Lexer ahead = lex;
    std::string first = name(ahead, "a value's name or an operator");
    if (!ahead.is("(")) {
      for (;;) {
        const int column = lex.peek().column;
        results.emplace_back(name(lex, "a value's name"), column);
        if (!lex.accept(",")) break;
      }
      lex.expect("=");
    }
    for (const auto& [result, column] : results)
      if (scope.names.contains(result)) lex.fail_at(column, "'" + result + "' is defined twice");
    if (lex.is_word("const")) {
      if (results.size() != 1) lex.fail("one name for a constant");
      lex.next();
      const Type t = read_type(lex, program_);
      Tensor value = read_literal(lex, t, literals_);
      lex.expect_end();
      scope.names[results[0].first] = g.add_constant(results[0].first, std::move(value));
      at_++;
      return;
    }
    if (++nodes_ > kMaxNodes) lex.fail("at most a million nodes");
    const int op_column = lex.peek().column;
    const std::string op_name = lex.expect_word("an operator");
    const OpInfo* row = find_op(op_name);
    if (!row)
      throw error(ErrorKind::UnsupportedOp, "{}, line {}, column {}: unknown operator '{}'", where_,
                  lex.number(), op_column, op_name)
          .advise("docs/ops.md lists the operators");
    Node node;
    node.op = row->op;
    node.attrs = row->make_attrs();
    lex.expect("(");
    for (bool begin = true; !lex.accept(")"); begin = false) {
      if (!begin) lex.expect(",");
      if (node.operands.size() >= kMaxOperands) lex.fail("at most 256 operands");
      const int column = lex.peek().column;
      if (lex.peek().kind == Token::Kind::weight) {
        node.operands.push_back(weight_value(scope, lex.next().text, lex.number(), column));
        continue;
      }
      if (lex.is_word("_")) {
        lex.next();
        node.operands.push_back(kNone);
        continue;
      }
      const std::string operand = name(lex, "a value, a weight, a state or _");
      if (const ValueId id = resolve(scope, operand); id != kNone)
        node.operands.push_back(id);
      else if (const int s = program_.find_state(operand); s >= 0)
        node.states.push_back(s);
      else
        lex.fail_at(column, "'" + operand + "' is not defined");
    }
    std::vector<Type> declared;
    while (!lex.at_end() && !lex.is("{") && !lex.is(":")) {
      const int column = lex.peek().column;
      const std::string attribute = lex.expect_word("an attribute");
      if (attribute == "backend") {
        lex.expect("=");
        if (lex.peek().kind != Token::Kind::string) lex.fail("a string");
        node.backend = lex.next().text;
        continue;
      }
      if (!read_attribute(lex, attribute, *node.attrs))
        lex.fail_at(column, fmt::format("'{}' has no attribute '{}'", op_name, attribute));
    }
    if (lex.accept(":")) {
      do {
        declared.push_back(read_type(lex, program_));
      } while (lex.accept(","));
    }
    const bool regions = lex.accept("{");
    lex.expect_end();
    const int line_number = lex.number();
    at_++;
    while (regions) {
      if (depth + 1 > kMaxNesting) lex.fail_at(1, "regions are nested too deeply");
      node.regions.push_back(std::make_unique<Graph>());
      if (!region(*node.regions.back(), scope, depth + 1)) break;
    }
    for (const auto& [result, column] : results) {
      node.results.push_back(g.add_value(result, {}));
      g.value(node.results.back()).node = static_cast<int>(g.nodes.size());
    }
    check_arity(node, *row, line_number, op_column);
    std::vector<Type> types;
    try {
      types = infer_types(program_, g, node);
    } catch (const Error& e) {
      throw e.at(fmt::format("{}, line {}", where_, line_number));
    }
    for (size_t i = 0; i < types.size(); i++) {
      if (i < declared.size()) {
        if (!compatible(types[i], declared[i]))
          throw error(ErrorKind::ShapeMismatch, "{}, line {}: '{}' is {}, not {}", where_, line_number,
                      results[i].first, to_string(types[i], program_.symbols),
                      to_string(declared[i], program_.symbols));
        refine(types[i], declared[i]);
      }
      g.value(node.results[i]).type = types[i];
      scope.names[results[i].first] = node.results[i];
    }
    g.nodes.push_back(std::move(node));
  }

  void check_arity(const Node& n, const OpInfo& row, int line, int column) {
    auto fits = [](size_t have, int least, int most) {
      return static_cast<int>(have) >= least && (most < 0 || static_cast<int>(have) <= most);
    };
    const char* what = !fits(n.operands.size(), row.min_operands, row.max_operands) ? "operands"
                       : !fits(n.results.size(), row.min_results, row.max_results)  ? "results"
                       : !fits(n.states.size(), 0, row.max_states)                  ? "states"
                                                                                    : nullptr;
    if (what)
      throw error(ErrorKind::InvalidFile, "{}, line {}, column {}: '{}' does not take {} {} ({})", where_,
                  line, column, row.text_name,
                  what == std::string_view("operands")  ? n.operands.size()
                  : what == std::string_view("results") ? n.results.size()
                                                        : n.states.size(),
                  what, row.operand_names);
  }

  // A region up to its `}`; true where `} else {` opens another one.
  bool region(Graph& g, Scope& outer, int depth) {
    Scope scope;
    scope.graph = &g;
    scope.outer = &outer;
    bool header = false;
    while (at_ < lines_.size()) {
      Lexer lex(lines_[at_].text, lines_[at_].number, where_);
      if (lex.at_end()) {
        at_++;
      } else if (!header) {
        signature(lex, scope);
        header = true;
        at_++;
      } else if (lex.accept("}")) {
        finish(scope);
        at_++;
        if (lex.at_end()) return false;
        if (lex.expect_word("else") != "else") lex.fail("'else'");
        lex.expect("{");
        lex.expect_end();
        // Outer values that the region added to the enclosing graph stay known there.
        return true;
      } else {
        statement(lex, scope, depth);
      }
    }
    Lexer last("", lines_.empty() ? 1 : lines_.back().number, where_);
    last.fail("'}'");
  }

  const std::string& where_;
  const WeightTypes& weight_types_;
  std::vector<SourceLine> lines_;
  size_t at_ = 0, nodes_ = 0, literals_ = 0;
  std::unordered_map<std::string, Type> weights_;
  Program program_;
};

}  // namespace

bool looks_like_program(std::string_view text) {
  constexpr size_t kComments = 64 << 10;
  text = text.substr(0, kComments);
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (!line.empty() && line.front() != '#') return line.starts_with("ir ");
    at = end + 1;
  }
  return false;
}

Program parse(std::string_view text, const std::string& where, const WeightTypes& weight_types) {
  Program p = Parser(text, where, weight_types).run();
  verify(p);
  return p;
}

}  // namespace cyb::ir
