// SPDX-License-Identifier: Apache-2.0
// Runs one compiled graph: plans segments as shapes become known, keeps the plans of recent shape classes,
// moves values between backends and the host, and runs regions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compile/segment_plan.h"
#include "runtime/weights.h"

namespace cyb {

// What all graphs of a session share.
struct RunContext {
  compile::Settings settings;
  WeightStore* weights = nullptr;
  std::vector<StateStore*> states;  // by index in the program
  RandomSource random;
  int64_t max_loop = 1'000'000'000;
};

class GraphRunner {
 public:
  GraphRunner(const compile::CompiledGraph& graph, RunContext& context);
  ~GraphRunner();

  // `inputs` in the graph's order; types and shapes are checked against the graph's. `outer`: values of the
  // enclosing graph, by their id there (regions only). Outputs are replaced; same shapes reuse their memory.
  using Outer = std::function<std::shared_ptr<const Tensor>(ir::ValueId)>;
  void run(std::span<const Tensor* const> inputs, std::vector<Tensor>& outputs, const Outer& outer = nullptr);

  struct Memory {
    uint64_t arena_bytes = 0, live_bytes = 0;  // of the plan run last, all backends
  };
  Memory memory() const;
  // Nodes, kernels, places, memory of the plan run last.
  std::string explain() const;

 private:
  struct Segment;
  struct Arena;
  struct Chain;
  class Run;
  const compile::CompiledGraph& graph_;
  RunContext& context_;
  std::vector<std::unique_ptr<Arena>> arenas_;  // by depth in the chain of segments
  std::unique_ptr<Chain> root_;
  std::vector<std::vector<std::unique_ptr<GraphRunner>>> regions_;  // by node
  std::vector<const Segment*> last_;
  uint64_t serials_ = 0;
  std::vector<int64_t> key_, symbols_;  // kept between runs: a run of known shapes takes no memory
};

}  // namespace cyb
