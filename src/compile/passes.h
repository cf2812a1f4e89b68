// SPDX-License-Identifier: Apache-2.0
// Passes over one graph and its regions. Each keeps what the graph computes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"

namespace cyb::compile {

// Computes one pure node on host tensors; `results` come with types and shapes set.
using Evaluator = std::function<void(const ir::Program&, const ir::Node&,
                                     std::span<const Tensor* const> operands, std::span<Tensor> results)>;

// How often each rewriting was done: "conv + silu" → 57. For --explain and tests.
using FusionLog = std::map<std::string, int>;

// Replaces nodes whose operands are all constants (results of at most 64k elements) by constants.
void fold(const ir::Program& program, ir::Graph& graph, const Evaluator& evaluate);

// Removes nodes whose results nobody reads; nodes with effects stay.
void remove_dead(ir::Graph& graph);

// Drops nodes that change nothing (identities, whole slices, permutes that cancel, · 1), shares equal ones,
// and takes zero padding into convolutions.
void simplify(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Batch norms, scales and shifts behind a convolution whose weights are constants → new weights. For
// importers: later, weights are used as they lie in the file.
void fold_weights(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Activations, norms and biases that were exported as arithmetic → silu, gelu, hard_swish, mish, layer_norm,
// rms_norm, matmul with bias.
void match_patterns(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// softmax(q·kᵀ·scale + bias)·v → sdpa.
void match_attention(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Moves permutes down through elementwise nodes, so that they meet and cancel.
void push_permutes(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Convolution, bias, activation and residual → fused_conv.
void fuse_convs(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Gated activations, several products of one operand, residual and norm, what follows a product.
void fuse(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// All of the above, in their order.
void optimize(const ir::Program& program, ir::Graph& graph, FusionLog& log);

// Fused operators back into primitive ones, those for which `keep` is false.
void expand(const ir::Program& program, ir::Graph& graph,
            const std::function<bool(const ir::Graph&, const ir::Node&)>& keep);

// Sets Value::node after nodes moved, and restores topological order. Throws InvalidFile on a cycle.
void renumber(ir::Graph& graph);

}  // namespace cyb::compile
