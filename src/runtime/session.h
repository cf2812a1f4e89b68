// SPDX-License-Identifier: Apache-2.0
// A session runs the graphs of one program over states of its own. Weights are shared between sessions; one thread
// at a time may use a session.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/graph_runner.h"

namespace cyb {

struct SessionOptions {
  std::vector<Backend*> backends;  // in order of preference, cpu last
  Precision precision;
  StateOptions states;
  bool fusion = true;
  uint64_t seed = 0;  // of random operators that have none of their own
};

class Session {
 public:
  // Compiles nothing yet: a graph is compiled when it first runs.
  Session(const ir::Program& program, WeightStore& weights, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionOptions& options() const { return options_; }
  bool has(const std::string& graph) const { return program_.find(graph) != nullptr; }
  // Inputs and outputs in the graph's order. Throws Usage for an unknown graph.
  void run(const std::string& graph, std::span<const Tensor* const> inputs, std::vector<Tensor>& outputs);

  // Positions of a slot that the states written by `graph` hold.
  int64_t length(int slot, const std::string& graph = "decode") const;
  // Keeps the first n positions of the states that `graph` writes. Returns from where the sequence must be computed
  // again: n, or less where a window lost what n needs.
  int64_t truncate(int slot, int64_t n, const std::string& graph = "decode");
  void reset(int slot);  // every state
  void fork(int from, int to);
  void select(std::span<const int32_t> index);
  // A slot of all states, with a header that names the program's states.
  void save(int slot, ByteSink& sink) const;
  void load(int slot, ByteSource& source);
  uint64_t state_bytes() const;

  GraphRunner::Memory memory(const std::string& graph) const;
  // Placement, kernels, memory of the plan that the graph ran last, and the nodes before and after fusion.
  std::string explain(const std::string& graph) const;

 private:
  struct Entry;
  Entry& entry(const std::string& graph);
  const std::vector<int>& written(const std::string& graph) const;

  const ir::Program& program_;
  SessionOptions options_;
  RunContext context_;
  std::vector<int> state_place_;
  std::vector<std::unique_ptr<StateStore>> states_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;
  std::map<std::string, std::vector<int>> written_;
};

}  // namespace cyb
