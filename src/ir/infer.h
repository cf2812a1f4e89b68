// SPDX-License-Identifier: Apache-2.0
// Shape rules: the types of a node's results from its operands. One rule serves the verifier, where
// dimensions may be symbols, and the executor, where all are numbers and the values that decide shapes are at
// hand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "ir/graph.h"

namespace cyb::ir {

// The node needs the value of this operand before its shapes can be told.
struct NeedHostValue {
  int operand;
};

class InferContext {
 public:
  // `host_value(i)` gives operand i's value where it is known (constants, shape arithmetic), else null.
  InferContext(const Program& program, const Node& node, std::vector<const Type*> operands,
               std::function<const Tensor*(int)> host_value, bool running);

  const Program& program() const { return program_; }
  const Node& node() const { return node_; }
  int operands() const { return static_cast<int>(operands_.size()); }
  bool has(int i) const { return i < operands() && operands_[static_cast<size_t>(i)] != nullptr; }
  const Type& type(int i) const;
  const State& state(int i) const;
  template <class T>
  const T& attrs() const {
    return node_.as<T>();
  }
  // The operand's value if known. In a run (`running`), one that is not known ends inference by
  // NeedHostValue.
  const Tensor* host_value(int i) const;
  bool running() const { return running_; }

  void result(int i, Type type);
  const std::vector<Type>& results() const { return results_; }

  // Throws ShapeMismatch that starts with the operator and the first result's name.
  [[noreturn]] void fail(const std::string& message) const;
  void require(bool condition, const std::string& message) const {
    if (!condition) fail(message);
  }
  std::string show(const Type& type) const { return to_string(type, program_.symbols); }

  // Helpers that rules share.
  Dim same(Dim a, Dim b, const char* what) const;      // fails where both are known and differ
  Dims broadcast(const Dims& a, const Dims& b) const;  // numpy rules
  int axis(int64_t axis, int rank) const;              // negative counts from the end

 private:
  const Program& program_;
  const Node& node_;
  std::vector<const Type*> operands_;
  std::function<const Tensor*(int)> host_value_;
  bool running_;
  std::vector<Type> results_;
};

// Types of the node's results in `graph`, with constants as the only known values. Throws ShapeMismatch.
std::vector<Type> infer_types(const Program& program, const Graph& graph, const Node& node);

}  // namespace cyb::ir
