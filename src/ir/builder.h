// SPDX-License-Identifier: Apache-2.0
// Builds one graph of a program; every node's types are inferred as it is added.
//   Builder b(program, "decode");
//   ValueId x = b.input("tokens", {DType::i32, {b.dim("B"), b.dim("T")}});
//   ValueId n = b.op(Op::RmsNorm, {h, w}, RmsNormAttrs{.eps = 1e-5}, "n.0");
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/infer.h"

namespace cyb::ir {

class Builder {
 public:
  Builder(Program& program, std::string graph_name);
  // Builds a region; it goes into a node when it is whole.
  Builder(Program& program, Graph& region) : program_(program), region_(&region) {}

  Program& program() { return program_; }
  Graph& graph() { return region_ ? *region_ : program_.graphs[index_]; }
  Dim dim(const char* symbol) { return Dim::symbol(program_.symbol(symbol)); }
  const Type& type(ValueId id) { return graph().value(id).type; }

  ValueId input(std::string name, Type type) { return graph().add_input(std::move(name), std::move(type)); }
  ValueId weight(const std::string& name, Dims dims) {
    return graph().add_weight(name, {DType::f32, std::move(dims)});
  }
  int state(State state);  // adds to the program, or finds it by name

  // Adds a node of one result and returns that; `name` is made unique if it is empty or taken.
  template <class A = NoAttrs>
  ValueId op(Op op, std::vector<ValueId> operands, A attrs = {}, std::string name = {},
             std::vector<int> states = {}) {
    return add(op, std::move(operands), std::make_unique<TypedAttrs<A>>(std::move(attrs)), {std::move(name)},
               std::move(states))[0];
  }
  // Adds a node with one result for each name.
  std::vector<ValueId> add(Op op, std::vector<ValueId> operands, std::unique_ptr<Attrs> attrs,
                           std::vector<std::string> names, std::vector<int> states = {});

  void output(std::string name, ValueId id) { graph().add_output(std::move(name), id); }

 private:
  std::string unique(const std::string& name);
  Program& program_;
  Graph* region_ = nullptr;
  size_t index_ = 0;
  int next_ = 0;
  std::map<std::string, bool, std::less<>> taken_;
};

}  // namespace cyb::ir
