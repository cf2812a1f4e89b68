// SPDX-License-Identifier: Apache-2.0
// The tree of a template. Children are visited in jinja2's field order, since its scoping depends on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "text/template/value.h"

namespace cyb::jinja {

enum class ExprKind : uint8_t {
  Text,  // template text between tags
  None,
  True,
  False,
  Integer,
  Float,
  String,
  Name,
  NsRef,
  Tuple,
  List,
  Dict,
  Getattr,
  Getitem,
  Slice,
  Call,
  Filter,
  Test,
  Binary,
  Unary,
  And,
  Or,
  Not,
  Compare,
  Concat,
  Cond,
};

enum class Op : uint8_t {
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Pow,
  Neg,
  Pos,
  Eq,
  Ne,
  Lt,
  LtEq,
  Gt,
  GtEq,
  In,
  NotIn
};

enum class Use : uint8_t { Load, Store, Param };

// Where a name lives: so many frames out, in that slot.
struct Place {
  uint32_t hops = 0;
  uint32_t slot = 0;
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Named {
  std::string name;
  ExprPtr value;
};

struct Expr {
  ExprKind kind;
  Op op = Op::Add;
  Use use = Use::Load;
  uint32_t depth = 1;
  size_t at = 0;          // byte in the normalised source
  std::string text;       // of Text, String; the name of Name, NsRef, Getattr, Filter, Test
  std::string attribute;  // of NsRef
  Int128 integer = 0;
  double real = 0;
  ExprPtr node;                // operand, left side, callee, the value if true
  ExprPtr right;               // right side, subscript; the condition of Cond; the end of Slice
  ExprPtr third;               // the else of Cond, the step of Slice
  std::vector<ExprPtr> items;  // of Tuple, List, Concat, Compare; keys and values of Dict; arguments
  std::vector<Op> ops;         // of Compare
  std::vector<Named> named;    // keyword arguments
  ExprPtr star, star_star;     // *args, **kwargs
  Place place;                 // of Name, NsRef
  Value (*filter)(const Value&, Args&) = nullptr;  // of Filter, if there is one of that name
  bool (*test)(const Value&, Args&) = nullptr;     // of Test

  template <class Visit>
  void for_each_child(Visit visit) const;
};

template <class Visit>
void Expr::for_each_child(Visit visit) const {
  auto child = [&](const ExprPtr& e) {
    if (e) visit(*e);
  };
  if (kind == ExprKind::Cond) {
    child(right);
    child(node);
    child(third);
    return;
  }
  child(node);
  for (const auto& e : items) child(e);
  for (const auto& n : named) child(n.value);
  child(right);
  child(third);
  child(star);
  child(star_star);
}

enum class StmtKind : uint8_t {
  Output,
  For,
  If,
  Macro,
  CallBlock,
  Generation,
  FilterBlock,
  With,
  Assign,
  AssignBlock,
  Block,
  Break,
  Continue,
  Loader,
};

// What happens to a name's slot when its frame is entered.
struct Load {
  enum How : uint8_t { Resolve, Alias, Unset } how;
  uint32_t slot;
  std::string name;  // to resolve in the context
  Place from;        // of an alias, seen from inside the new frame
};

struct FrameLayout {
  std::vector<Load> loads;
  uint32_t slots = 0;
};

struct Stmt;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

struct Stmt {
  StmtKind kind;
  size_t at = 0;
  std::string name;             // of Macro, Block, Loader
  std::vector<ExprPtr> items;   // of Output; parameters; targets of With
  std::vector<ExprPtr> values;  // defaults of parameters; values of With
  ExprPtr target;               // of For, Assign, AssignBlock
  ExprPtr node;                 // iterable, test of If, value, filter, call
  ExprPtr test;                 // the filter of For
  ExprPtr test_target;          // its target, in the frame of the test
  Body body, otherwise;
  std::vector<StmtPtr> elifs;
  bool recursive = false;
  bool uses_loop = false;  // of For: the body speaks of `loop`
  bool toplevel = false;   // an assignment that blocks can see
  bool takes_caller = false, takes_kwargs = false, takes_varargs = false;
  FrameLayout frame, test_frame, else_frame;
  Place place;  // of a macro's name
  uint32_t loop_slot = 0, caller_slot = 0, kwargs_slot = 0, varargs_slot = 0;
};

struct Tree {
  std::string source;         // normalised
  std::vector<size_t> lines;  // where they start
  Body body;
  FrameLayout frame;
  std::vector<Stmt*> blocks;
};

// Line and column, from 1; columns count characters.
struct Position {
  size_t line, column;
};
Position position_of(const Tree& tree, size_t at);

void set_source(Tree& tree, std::string_view source);

// Parses the tree's source and resolves names. Throws Failure; `at` is where.
void parse_tree(Tree& tree, size_t& at);

// Gives every name its place. Throws Failure as jinja2's compiler does.
void resolve_names(Tree& tree, size_t& at);

}  // namespace cyb::jinja
