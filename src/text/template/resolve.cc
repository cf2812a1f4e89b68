// SPDX-License-Identifier: Apache-2.0
// Names to places. jinja2 compiles a template to Python functions and their local variables, and what a
// template sees follows from that; the same analysis is made here, with a frame for each scope.
#include <algorithm>
#include <map>
#include <set>

#include "text/template/ast.h"
#include "text/template/library.h"
#include "text/template/python_text.h"

namespace cyb::jinja {
namespace {

// What is known about the names of a frame, at one point of its analysis.
class Symbols {
 public:
  explicit Symbols(Symbols* parent)
      : parent_(parent), slots_(std::make_shared<std::map<std::string, uint32_t>>()) {}

  // So many frames out, in that slot; false if nobody knows the name.
  bool find(const std::string& name, Place& place) const {
    uint32_t hops = 0;
    for (const Symbols* s = this; s; s = s->parent_, ++hops) {
      if (!s->known_.contains(name)) continue;
      place = {hops, s->slots_->at(name)};
      return true;
    }
    return false;
  }

  void load(const std::string& name) {
    Place place;
    if (find(name, place)) return;
    uint32_t slot = define(name);
    loads_[slot] = {Load::Resolve, slot, name, {}};
  }

  void store(const std::string& name) {
    stores_.insert(name);
    if (known_.contains(name)) return;
    uint32_t slot = define(name);
    loads_[slot] = outer(name, slot, Load::Unset);
  }

  uint32_t declare_parameter(const std::string& name) {
    stores_.insert(name);
    uint32_t slot = define(name);
    loads_.erase(slot);
    return slot;
  }

  void merge_branches(const std::vector<Symbols>& branches) {
    for (const Symbols& branch : branches) Meter::current().work(8 * branch.size());
    std::set<std::string> stores;
    for (const Symbols& branch : branches) stores.insert(branch.stores_.begin(), branch.stores_.end());
    for (const std::string& name : stores_) stores.erase(name);
    for (const Symbols& branch : branches) {
      known_.insert(branch.known_.begin(), branch.known_.end());
      for (const auto& [slot, load] : branch.loads_) loads_[slot] = load;
      stores_.insert(branch.stores_.begin(), branch.stores_.end());
    }
    for (const std::string& name : stores) {
      uint32_t slot = slots_->at(name);
      loads_[slot] = outer(name, slot, Load::Resolve);
    }
  }

  size_t size() const { return known_.size() + stores_.size() + loads_.size(); }

  FrameLayout layout() const {
    FrameLayout out;
    out.slots = static_cast<uint32_t>(slots_->size());
    for (const auto& [slot, load] : loads_) out.loads.push_back(load);
    return out;
  }

 private:
  uint32_t define(const std::string& name) {
    known_.insert(name);
    return slots_->emplace(name, static_cast<uint32_t>(slots_->size())).first->second;
  }

  Load outer(const std::string& name, uint32_t slot, Load::How otherwise) const {
    Place place;
    if (parent_ && parent_->find(name, place)) return {Load::Alias, slot, name, {place.hops + 1, place.slot}};
    return {otherwise, slot, name, {}};
  }

  Symbols* parent_;
  std::shared_ptr<std::map<std::string, uint32_t>> slots_;  // shared by the branches of an if
  std::set<std::string> known_, stores_;
  std::map<uint32_t, Load> loads_;  // parameters have none
};

// ---------------------------------------------------------------------------------------------- which names
// a frame has

class Collector {
 public:
  explicit Collector(Symbols& symbols) : symbols_(&symbols) {}

  void expr(const Expr& e) {
    if (e.kind == ExprKind::Name) {
      if (e.use == Use::Param) {
        symbols_->declare_parameter(e.text);
      } else if (e.use == Use::Store) {
        symbols_->store(e.text);
      } else {
        symbols_->load(e.text);
      }
      return;
    }
    if (e.kind == ExprKind::NsRef) return symbols_->load(e.text);
    e.for_each_child([this](const Expr& child) { expr(child); });
  }
  void expr(const ExprPtr& e) {
    if (e) expr(*e);
  }
  void exprs(const std::vector<ExprPtr>& list) {
    for (const auto& e : list) expr(e);
  }
  void parameters(const Expr& target) {
    if (target.kind == ExprKind::Name) {
      symbols_->declare_parameter(target.text);
      return;
    }
    for (const auto& item : target.items) parameters(*item);
  }
  void body(const Body& list) {
    for (const auto& s : list) stmt(*s);
  }

 private:
  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::Output:
        return exprs(s.items);
      case StmtKind::If:
        return branches(s);
      case StmtKind::For:
      case StmtKind::CallBlock:
      case StmtKind::FilterBlock:
      case StmtKind::Loader:
        return expr(s.node);
      case StmtKind::Macro:
        return symbols_->store(s.name);
      case StmtKind::With:
        return exprs(s.values);
      case StmtKind::Assign:
        expr(s.node);
        return expr(s.target);
      case StmtKind::AssignBlock:
        return expr(s.target);
      case StmtKind::Generation:
      case StmtKind::Block:
      case StmtKind::Break:
      case StmtKind::Continue:
        return;
    }
  }

  void branches(const Stmt& s) {
    expr(s.node);
    Symbols* whole = symbols_;
    std::vector<Symbols> copies;
    auto branch = [&](auto visit) {
      Meter::current().work(8 * whole->size());
      Symbols copy = *whole;
      symbols_ = &copy;
      visit();
      symbols_ = whole;
      copies.push_back(std::move(copy));
    };
    branch([&] { body(s.body); });
    branch([&] { body(s.elifs); });
    branch([&] { body(s.otherwise); });
    whole->merge_branches(copies);
  }

  Symbols* symbols_;
};

// ---------------------------------------------------------------------------------------------- names used
// undeclared

// Which of these names a body loads before it stores them, functions inside included.
class Undeclared {
 public:
  explicit Undeclared(std::set<std::string> names) : wanted_(std::move(names)) {}
  std::set<std::string> in(const Body& list) {
    body(list);
    return found_;
  }

 private:
  void expr(const Expr& e) {
    Meter::current().work(1);
    if (e.kind == ExprKind::Name) {
      if (e.use == Use::Load && wanted_.contains(e.text)) {
        found_.insert(e.text);
      } else {
        wanted_.erase(e.text);
      }
      return;
    }
    e.for_each_child([this](const Expr& child) { expr(child); });
  }
  void expr(const ExprPtr& e) {
    if (e) expr(*e);
  }
  void exprs(const std::vector<ExprPtr>& list) {
    for (const auto& e : list) expr(e);
  }
  void body(const Body& list) {
    for (const auto& s : list) stmt(*s);
  }
  void stmt(const Stmt& s) {
    switch (s.kind) {
      case StmtKind::Block:
        return;
      case StmtKind::FilterBlock:
        body(s.body);
        return expr(s.node);
      case StmtKind::CallBlock:
        expr(s.node);
        break;
      case StmtKind::Macro:
      case StmtKind::Generation:
        break;
      case StmtKind::AssignBlock:
        expr(s.target);
        expr(s.node);
        return body(s.body);
      default:
        expr(s.target);
        expr(s.node);
    }
    exprs(s.items);
    exprs(s.values);
    body(s.body);
    body(s.elifs);
    body(s.otherwise);
    expr(s.test);
  }

  std::set<std::string> wanted_, found_;
};

// ---------------------------------------------------------------------------------------------- places

struct Scope {
  Symbols& symbols;
  bool toplevel = false;
  bool soft = false;  // inside an if: unknown filters are only an error when they are reached
};

class Resolver {
 public:
  Resolver(Tree& tree, size_t& at) : tree_(tree), at_(at) {}

  void run() {
    if (Undeclared({"self"}).in(tree_.body).contains("self")) fail(kUnsupported, "the variable 'self'");
    Symbols root(nullptr);
    Collector(root).body(tree_.body);
    body(tree_.body, {root, true, false});
    tree_.frame = root.layout();
    for (size_t i = 0; i < tree_.blocks.size(); ++i) {
      Stmt& block = *tree_.blocks[i];
      if (!Undeclared({"self", "super"}).in(block.body).empty())
        fail(kUnsupported, "the variables 'self' and 'super'");
      Symbols symbols(nullptr);
      Collector(symbols).body(block.body);
      body(block.body, {symbols, false, false});
      block.frame = symbols.layout();
    }
  }

 private:
  void body(Body& list, const Scope& scope) {
    for (auto& s : list) stmt(*s, scope);
  }
  void exprs(std::vector<ExprPtr>& list, const Scope& scope) {
    for (auto& e : list) expr(*e, scope);
  }

  Place place(const std::string& name, size_t at, const Scope& scope) {
    Place out;
    if (!scope.symbols.find(name, out)) {
      at_ = at;
      fail(kAssertionError, "the name '{}' cannot be used here", name);
    }
    return out;
  }

  void expr(Expr& e, const Scope& scope) {
    if (e.kind == ExprKind::Name || e.kind == ExprKind::NsRef) {
      e.place = place(e.text, e.at, scope);
      return;
    }
    bool filter = e.kind == ExprKind::Filter, test = e.kind == ExprKind::Test;
    if (filter) e.filter = find_filter(e.text);
    if (test) e.test = find_test(e.text);
    if ((filter || test) && !scope.soft && !e.filter && !e.test) {
      at_ = e.at;
      fail(kAssertionError, "No {} named {}.", filter ? "filter" : "test", quoted(e.text));
    }
    Scope inner = scope;
    if (e.kind == ExprKind::Cond) inner.soft = true;
    e.for_each_child([&](const Expr& child) { expr(const_cast<Expr&>(child), inner); });
  }
  void expr(ExprPtr& e, const Scope& scope) {
    if (e) expr(*e, scope);
  }

  void stmt(Stmt& s, const Scope& scope) {
    switch (s.kind) {
      case StmtKind::Output:
        return exprs(s.items, scope);
      case StmtKind::For:
        return loop(s, scope);
      case StmtKind::If:
        return branches(s, scope);
      case StmtKind::Macro:
        function(s, scope);
        s.place = place(s.name, s.at, scope);
        s.toplevel = scope.toplevel;
        return;
      case StmtKind::CallBlock:
        function(s, scope);
        return expr(s.node, scope);
      case StmtKind::Generation:
        return function(s, scope);
      case StmtKind::FilterBlock: {
        Symbols symbols(&scope.symbols);
        Collector collect(symbols);
        collect.body(s.body);
        collect.expr(s.node);
        Scope inner{symbols};
        body(s.body, inner);
        expr(s.node, inner);
        s.frame = symbols.layout();
        return;
      }
      case StmtKind::With: {
        Symbols symbols(&scope.symbols);
        Collector collect(symbols);
        collect.exprs(s.items);
        collect.body(s.body);
        Scope inner{symbols};
        exprs(s.items, inner);
        exprs(s.values, scope);
        body(s.body, inner);
        s.frame = symbols.layout();
        return;
      }
      case StmtKind::Assign:
        expr(s.target, scope);
        expr(s.node, scope);
        s.toplevel = scope.toplevel;
        return;
      case StmtKind::AssignBlock: {
        Symbols symbols(&scope.symbols);
        Collector(symbols).body(s.body);
        Scope inner{symbols};
        body(s.body, inner);
        expr(s.target, scope);
        expr(s.node, inner);
        s.toplevel = scope.toplevel;
        s.frame = symbols.layout();
        return;
      }
      case StmtKind::Block:
        tree_.blocks.push_back(&s);
        return;
      case StmtKind::Loader:
        return expr(s.node, scope);
      case StmtKind::Break:
      case StmtKind::Continue:
        return;
    }
  }

  void branches(Stmt& s, Scope scope) {
    scope.soft = true;
    expr(s.node, scope);
    body(s.body, scope);
    for (auto& elif : s.elifs) {
      expr(elif->node, scope);
      body(elif->body, scope);
    }
    body(s.otherwise, scope);
  }

  // ------------------------------------------------------------------------------------------ loops
  void no_loop_target(const Expr& e) {
    Meter::current().work(1);
    if (e.kind == ExprKind::Name && e.use == Use::Store && e.text == "loop") {
      at_ = e.at;
      fail(kAssertionError, "Can't assign to special loop variable in for-loop target");
    }
    e.for_each_child([this](const Expr& child) { no_loop_target(child); });
  }
  void no_loop_target(const Stmt& s) {
    for (const ExprPtr* e : {&s.target, &s.node, &s.test}) {
      if (*e) no_loop_target(**e);
    }
    for (const Body* b : {&s.body, &s.elifs, &s.otherwise}) {
      for (const auto& child : *b) no_loop_target(*child);
    }
  }

  void loop(Stmt& s, const Scope& scope) {
    no_loop_target(s);
    Symbols inner(&scope.symbols);
    s.uses_loop = s.recursive || Undeclared({"loop"}).in(s.body).contains("loop");
    if (s.uses_loop) s.loop_slot = inner.declare_parameter("loop");
    Collector collect(inner);
    collect.parameters(*s.target);
    collect.body(s.body);

    expr(s.node, scope);
    if (s.test) {
      Symbols tested(&scope.symbols);
      Collector collect_test(tested);
      collect_test.parameters(*s.test_target);
      collect_test.expr(s.test);
      Scope test_scope{tested};
      expr(s.test_target, test_scope);
      expr(s.test, test_scope);
      s.test_frame = tested.layout();
    }
    Scope inner_scope{inner};
    expr(s.target, inner_scope);
    body(s.body, inner_scope);
    s.frame = inner.layout();
    if (!s.otherwise.empty()) {
      Symbols otherwise(&scope.symbols);
      Collector(otherwise).body(s.otherwise);
      body(s.otherwise, {otherwise});
      s.else_frame = otherwise.layout();
    }
  }

  // ------------------------------------------------------------------------------------------ functions
  void function(Stmt& s, const Scope& scope) {
    Symbols symbols(&scope.symbols);
    Collector collect(symbols);
    collect.exprs(s.items);
    collect.exprs(s.values);
    collect.body(s.body);
    auto has_parameter = [&](std::string_view name) {
      return std::find_if(s.items.begin(), s.items.end(), [&](const auto& p) { return p->text == name; });
    };
    std::set<std::string> used = Undeclared({"caller", "kwargs", "varargs"}).in(s.body);
    if (used.contains("caller")) {
      s.takes_caller = true;
      auto it = has_parameter("caller");
      if (it == s.items.end()) {
        s.caller_slot = symbols.declare_parameter("caller");
      } else if (static_cast<size_t>(s.items.end() - it) > s.values.size()) {
        at_ = s.at;
        fail(kAssertionError,
             "When defining macros or call blocks the special \"caller\" argument must be omitted or be "
             "given a default.");
      }
    }
    if (used.contains("kwargs") && has_parameter("kwargs") == s.items.end()) {
      s.takes_kwargs = true;
      s.kwargs_slot = symbols.declare_parameter("kwargs");
    }
    if (used.contains("varargs") && has_parameter("varargs") == s.items.end()) {
      s.takes_varargs = true;
      s.varargs_slot = symbols.declare_parameter("varargs");
    }
    Scope inner{symbols};
    exprs(s.items, inner);
    exprs(s.values, inner);
    body(s.body, inner);
    s.frame = symbols.layout();
  }

  Tree& tree_;
  size_t& at_;
};

}  // namespace

void resolve_names(Tree& tree, size_t& at) { Resolver(tree, at).run(); }

}  // namespace cyb::jinja
