// SPDX-License-Identifier: Apache-2.0
// What passes over a graph share: looking backwards from a node, changing nodes in place, new nodes, values
// that stand for others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compile/passes.h"
#include "ir/infer.h"

namespace cyb::compile {

// A pass changes nodes in place so that their results stay; `Node*` stay valid until settle().
class Rewriter {
 public:
  Rewriter(const ir::Program& p, ir::Graph& g, FusionLog& l) : program(p), graph(g), log(l) {}

 protected:
  // The node that makes a value; null for inputs, weights and constants, and for other operators.
  ir::Node* producer(ir::ValueId id);
  ir::Node* producer(ir::ValueId id, ir::Op op);
  // Whether one node alone reads it, and no region and no output.
  bool once(ir::ValueId id) const { return uses[static_cast<size_t>(id)] == 1; }
  bool is_weight(ir::ValueId id) const;
  bool is_fixed(ir::ValueId id) const;  // a weight or a constant
  const ir::Type& type(ir::ValueId id) const { return graph.value(id).type; }
  // The value of a constant of one element and any rank.
  std::optional<double> scalar(ir::ValueId id) const;
  bool is_scalar(ir::ValueId id, double value) const;  // within f32's resolution
  // The other operand of a commutative node where one is the given scalar; kNone.
  ir::ValueId beside_scalar(const ir::Node& node, double value, bool exactly = false) const;
  // Types agree in all that is known; `certain`: nothing is left open.
  bool same_type(ir::ValueId a, ir::ValueId b, bool certain) const;

  // Changes a node's operator, operands and attributes; its first result stays and is its only one.
  template <class A>
  void become(ir::Node& node, ir::Op op, std::vector<ir::ValueId> operands, A attrs) {
    node.op = op;
    node.operands = std::move(operands);
    node.attrs = std::make_unique<ir::TypedAttrs<A>>(std::move(attrs));
  }
  // A new node of one result; it joins the graph at settle().
  template <class A = ir::NoAttrs>
  ir::ValueId emit(ir::Op op, std::vector<ir::ValueId> operands, A attrs = {}) {
    ir::Node n;
    n.op = op;
    n.operands = std::move(operands);
    n.attrs = std::make_unique<ir::TypedAttrs<A>>(std::move(attrs));
    return emit(std::move(n));
  }
  ir::ValueId emit(ir::Node node);
  // Readers of `from` read `to` after settle().
  void alias(ir::ValueId from, ir::ValueId to) { aliases_[from] = to; }

  // Applies aliases and new nodes, drops what lost its readers, sorts, counts readers.
  void settle();

  const ir::Program& program;
  ir::Graph& graph;
  FusionLog& log;
  std::vector<int> uses;

 private:
  std::vector<ir::Node> added_;
  std::map<ir::ValueId, ir::ValueId> aliases_;
};

// Axes of a permute or transpose as a permutation; empty where the rank is open.
std::vector<int64_t> permutation(const ir::Node& node, const ir::Type& operand);

}  // namespace cyb::compile
