// SPDX-License-Identifier: Apache-2.0
// Programs: named graphs of typed operators and the states that they share. docs/ir.md is the contract.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ir/attrs.h"
#include "ir/op.h"
#include "ir/type.h"
#include "tensor/tensor.h"

namespace cyb::ir {

using ValueId = int32_t;
constexpr ValueId kNone = -1;  // an optional operand that is absent

struct Graph;

struct Value {
  enum class Kind : uint8_t { input, result, weight, constant, outer };
  Kind kind = Kind::input;
  Type type;
  std::string name;  // unique in its graph; weights: the tensor's name
  int node = -1;     // result: index of its node
  std::shared_ptr<const Tensor> constant;
  ValueId outer = kNone;  // outer: the value of the enclosing graph that it stands for
};

struct Node {
  Op op = Op::Add;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<int> states;  // indices into Program::states
  std::unique_ptr<Attrs> attrs;
  std::vector<std::unique_ptr<Graph>> regions;
  std::string backend;  // hint, may be empty

  Node() = default;
  Node(const Node& other);
  Node& operator=(const Node& other);
  Node(Node&&) = default;
  Node& operator=(Node&&) = default;

  template <class T>
  const T& as() const {
    return *static_cast<const T*>(attrs->raw());
  }
  template <class T>
  T& as() {
    return *static_cast<T*>(attrs->raw());
  }
};

// Inputs, outputs, nodes in topological order. A region is a graph too; its outer values name the enclosing
// graph's values that it reads.
struct Graph {
  std::string name;
  std::vector<Value> values;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<std::string> output_names;  // as many as outputs
  std::vector<Node> nodes;

  Graph() = default;
  Graph(const Graph&) = default;
  Graph& operator=(const Graph&) = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }

  ValueId add_input(std::string name, Type type);
  ValueId add_weight(const std::string& name, Type type);  // the same id for the same name
  ValueId add_constant(std::string name, Tensor value);
  ValueId add_outer(ValueId outer, const Value& value);  // the same id for the same outer value
  ValueId add_value(std::string name, Type type);        // a result, to be put into a node
  void add_output(std::string name, ValueId id);
  // How many nodes, regions and outputs read each value.
  std::vector<int> use_counts() const;
};

// Memory that outlives a run.
struct State {
  enum class Kind : uint8_t { kv, tensor };
  std::string name;
  Kind kind = Kind::kv;
  int64_t heads = 0, k_dim = 0, v_dim = 0;
  int64_t window = 0;  // positions that readers may look back, 0: all
  Type type;           // Kind::tensor: with the symbol B for its slots
  friend bool operator==(const State&, const State&) = default;
};

struct Program {
  std::vector<Symbol> symbols;
  std::vector<State> states;
  std::vector<Graph> graphs;

  int symbol(std::string_view name, bool data = false);  // finds or adds
  const Graph* find(std::string_view name) const;
  Graph* find(std::string_view name) {
    return const_cast<Graph*>(static_cast<const Program*>(this)->find(name));
  }
  int find_state(std::string_view name) const;  // −1: none
};

// A tensor that the program reads, and whether it is read as a matrix by a product or a look-up.
struct WeightUse {
  std::string name;
  Type type;
  bool matrix = false;  // operand of Matmul, RoutedMatmul, TokenEmbed
  bool lookup = false;  // operand of TokenEmbed
  bool conv = false;
};
// Every weight of every graph, once, in order of first use.
std::vector<WeightUse> weight_uses(const Program& program);

}  // namespace cyb::ir
