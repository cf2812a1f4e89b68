// SPDX-License-Identifier: Apache-2.0
// A picture of a graph, in the language of Graphviz.
#pragma once

#include <string>

#include "ir/graph.h"

namespace cyb::ir {

// A box for each node, with its attributes and the shapes of its weights and constants; an edge for each
// value that nodes hand on, with its type; regions as frames. Boxes are kept small, so that graphs of
// thousands of nodes can still be drawn.
std::string print_dot(const Program& program, const Graph& graph);

}  // namespace cyb::ir
