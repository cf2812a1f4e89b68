// SPDX-License-Identifier: Apache-2.0
// Arrays for the inputs of a graph, as --input and --dim describe them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace CLI {
class App;
}

namespace cyb {

struct GraphInputFlags {
  std::vector<std::string> inputs, dims;
  uint64_t seed = 0;
  std::string graph = "main";
  bool no_fusion = false;
};
// --input --dim --graph --no-fusion
void add_graph_input_flags(CLI::App& command, GraphInputFlags& flags);

struct GraphInputRules {
  bool random_default = false;  // inputs that are not named are random
  std::string command;          // "cyb-llm run MODEL", for examples in errors
};

// Each `--input` is NAME=VALUE or an .npz file with an array for each input. VALUE is
//   file.npy, file.npz (its array NAME), random[:SHAPE][:LOW..HIGH], zeros[:SHAPE], ones[:SHAPE], or a
//   literal such as 0.5, [1, 2, 3], true, "text".
// Symbols get their numbers from --dim and from the arrays. Throws Usage, with a line for each input of the
// graph and an example, where something is missing or does not fit.
std::vector<Tensor> make_graph_inputs(const ir::Program& program, const ir::Graph& graph,
                                      const GraphInputFlags& flags, const GraphInputRules& rules);

// A command line with each input: "cyb-llm run m --input x=x.npy".
std::string example_command(const ir::Program& program, const ir::Graph& graph, const std::string& command);

}  // namespace cyb
