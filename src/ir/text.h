// SPDX-License-Identifier: Apache-2.0
// The text form of programs (docs/ir.md): parse(print(p)) is p.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace cyb::ir {

struct PrintOptions {
  bool weight_types =
      true;  // `weight @name: f32[…]` lines; without them the reader takes types from the file
  bool fold_loops = false;  // repeated lines as bounded `for`
};
std::string print(const Program& program, const PrintOptions& options = {});
// One line, without regions: for messages and --explain.
std::string print_node(const Program& program, const Graph& graph, const Node& node);
// "stride=[2, 2] ceil": the attributes that differ from their defaults.
std::string print_attributes(const Node& node);

// The type of a tensor that no `weight` line declares; null result: there is none.
using WeightTypes = std::function<const Type*(const std::string& name)>;

// Whether a text begins as programs do: with "ir", behind comments.
bool looks_like_program(std::string_view text);

// Throws InvalidFile with `where`, line, column and what was expected; ShapeMismatch from shape rules. The
// result is verified.
Program parse(std::string_view text, const std::string& where, const WeightTypes& weight_types = nullptr);

// Throws InvalidFile: names, order, arity, attributes, states, types, nesting.
void verify(const Program& program);

constexpr int kMaxNesting = 16;
constexpr size_t kMaxText = 64u << 20;
constexpr size_t kMaxNodes = 1'000'000;
constexpr size_t kMaxOperands = 256;
constexpr size_t kMaxLiterals = 1'000'000;

}  // namespace cyb::ir
