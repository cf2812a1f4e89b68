// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "ir/infer.h"
#include "ir/text.h"

namespace cyb::ir {
namespace {

class Verifier {
 public:
  explicit Verifier(const Program& p) : program_(p) {}

  void run() {
    std::set<std::string> names;
    for (const State& s : program_.states)
      if (!names.insert(s.name).second) fail("state '" + s.name + "' is there twice");
    names.clear();
    for (const Graph& g : program_.graphs) {
      if (!names.insert(g.name).second) fail("graph '" + g.name + "' is there twice");
      appended_.assign(program_.states.size(), false);
      graph(g, nullptr, 0);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& message) {
    throw error(ErrorKind::InvalidFile, "program: {}", message);
  }

  void graph(const Graph& g, const Graph* outer, int depth) {
    const std::string where = "graph '" + g.name + "': ";
    if (depth > kMaxNesting) fail(where + "regions are nested too deeply");
    std::set<std::string> names;
    std::vector<bool> ready(g.values.size(), false);
    for (size_t i = 0; i < g.values.size(); i++) {
      const Value& v = g.values[i];
      if (v.kind != Value::Kind::weight && !names.insert(v.name).second)
        fail(where + "value '" + v.name + "' is there twice");
      if (v.kind == Value::Kind::outer &&
          (!outer || v.outer < 0 || static_cast<size_t>(v.outer) >= outer->values.size()))
        fail(where + "'" + v.name + "' is no value of the enclosing graph");
      if (v.type.rank() > kMaxRank) fail(where + "value '" + v.name + "' has a rank above 8");
      ready[i] = v.kind != Value::Kind::result;
    }
    auto known = [&](ValueId id) {
      return id >= 0 && static_cast<size_t>(id) < ready.size() && ready[static_cast<size_t>(id)];
    };
    for (const Node& n : g.nodes) {
      const OpInfo& row = info(n.op);
      const std::string node =
          where + row.text_name + (n.results.empty() ? "" : " '" + g.value(n.results[0]).name + "'") + ": ";
      for (ValueId id : n.operands)
        if (id != kNone && !known(id)) fail(node + "an operand is read before it is made");
      for (const auto& region : n.regions)
        for (const Value& v : region->values)
          if (v.kind == Value::Kind::outer && !known(v.outer))
            fail(node + "a region reads '" + v.name + "' before it is made");
      if (static_cast<int>(n.operands.size()) < row.min_operands ||
          (row.max_operands >= 0 && static_cast<int>(n.operands.size()) > row.max_operands))
        fail(node + fmt::format("{} operands", n.operands.size()));
      if (!n.attrs || n.attrs->type() != row.make_attrs()->type())
        fail(node + "attributes of another operator");
      for (int s : n.states) {
        if (s < 0 || static_cast<size_t>(s) >= program_.states.size()) fail(node + "an unknown state");
        const bool appends =
            n.op == Op::KvCache || (n.op == Op::Sdpa && n.operands.size() > 1 && n.operands[1] != kNone);
        if (appends) {
          if (depth > 0) fail(node + "regions may read states, not write them");
          if (appended_[static_cast<size_t>(s)])
            fail(node + "state '" + program_.states[static_cast<size_t>(s)].name +
                 "' is written twice in one graph");
          appended_[static_cast<size_t>(s)] = true;
        }
      }
      for (const auto& region : n.regions) graph(*region, &g, depth + 1);
      const std::vector<Type> types = infer_types(program_, g, n);
      for (size_t i = 0; i < n.results.size(); i++) {
        const Value& v = g.value(n.results[i]);
        if (v.kind != Value::Kind::result || ready[static_cast<size_t>(n.results[i])])
          fail(node + "a result is made twice");
        if (v.type.dtype != types[i].dtype)
          fail(node + "result '" + v.name + "' is " + to_string(v.type, program_.symbols) +
               ", the operator gives " + to_string(types[i], program_.symbols));
        ready[static_cast<size_t>(n.results[i])] = true;
      }
    }
    if (g.outputs.size() != g.output_names.size()) fail(where + "outputs and their names differ in number");
    for (ValueId id : g.outputs)
      if (!known(id)) fail(where + "an output is never made");
  }

  const Program& program_;
  std::vector<bool> appended_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace cyb::ir
