// SPDX-License-Identifier: Apache-2.0
// Passes over one graph and its regions. Each keeps what the graph computes.
#pragma once

#include <functional>

#include "ir/graph.h"

namespace cyb::compile {

// Computes one pure node on host tensors; `results` come with types and shapes set.
using Evaluator = std::function<void(const ir::Program&, const ir::Node&,
                                     std::span<const Tensor* const> operands, std::span<Tensor> results)>;

// Replaces nodes whose operands are all constants (results of at most 64k elements) by constants.
void fold(const ir::Program& program, ir::Graph& graph, const Evaluator& evaluate);

// Removes nodes whose results nobody reads; nodes with effects stay.
void remove_dead(ir::Graph& graph);

// Primitive operators into fused ones: gated activations, several products of one operand, residual and norm.
void fuse(const ir::Program& program, ir::Graph& graph);

// Fused operators back into primitive ones, those for which `keep` is false.
void expand(const ir::Program& program, ir::Graph& graph, const std::function<bool(const ir::Node&)>& keep);

// Sets Value::node after nodes moved, and restores topological order. Throws InvalidFile on a cycle.
void renumber(ir::Graph& graph);

}  // namespace cyb::compile
