// SPDX-License-Identifier: Apache-2.0
// Nodes that read or make string tensors. They run on the host, between segments.
#pragma once

#include <functional>
#include <span>

#include "ir/graph.h"

namespace cyb {

// Whether an operand or a result is a tensor of strings.
bool touches_strings(const ir::Graph& graph, const ir::Node& node);

// Whether strings may stand in the node: operators on texts, operators that move elements without looking at
// them, equal, where.
bool takes_strings(ir::Op op);

using NodeEvaluator = std::function<void(const ir::Program&, const ir::Node&,
                                         std::span<const Tensor* const> operands, std::span<Tensor> results)>;

// Evaluates a node of such an operator. Outside the group text every string becomes a number, the same for
// equal strings, `evaluate` does the rest, and numbers become strings again.
void evaluate_strings(const ir::Program& program, const ir::Node& node,
                      std::span<const Tensor* const> operands, std::span<Tensor> results,
                      const NodeEvaluator& evaluate);

}  // namespace cyb
