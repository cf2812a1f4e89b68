// SPDX-License-Identifier: Apache-2.0
// A graph after the passes, with the backend of each node: what plans are made from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "compile/passes.h"

namespace cyb::compile {

constexpr int kHost = -1;  // control and data-dependent nodes: the executor itself

struct Settings {
  std::vector<Backend*> backends;  // in order of preference; the last one takes every node (cpu)
  std::function<const TensorSpec*(const std::string&)> find_weight;  // null: no such tensor
  Precision precision;
  bool fusion = true;
  Evaluator evaluate;
};

struct CompiledGraph {
  const ir::Program* program = nullptr;
  ir::Graph graph;
  std::vector<int> place;         // by node: index of its backend, or kHost
  std::vector<std::string> fell;  // by node: why an earlier backend did not take it, may be empty
  std::vector<bool> host_needed;  // by value: decides shapes, so it is wanted on the host
  std::vector<std::vector<std::unique_ptr<CompiledGraph>>> regions;  // by node
  size_t nodes_before_fusion = 0;
  FusionLog fusions;
};

// The backend of each state: the first that takes every node of every graph that uses it.
std::vector<int> place_states(const ir::Program& program, const Settings& settings);

// Throws MissingTensor where a weight is not there, UnsupportedOp where no backend takes a node.
std::unique_ptr<CompiledGraph> compile_graph(const ir::Program& program, const ir::Graph& graph,
                                             const Settings& settings, const std::vector<int>& state_place);

}  // namespace cyb::compile
