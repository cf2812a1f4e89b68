// SPDX-License-Identifier: Apache-2.0
#include "ir/infer.h"

#include <algorithm>

namespace cyb::ir {

InferContext::InferContext(const Program& program, const Node& node, std::vector<const Type*> operands,
                           std::function<const Tensor*(int)> host_value, bool running)
    : program_(program),
      node_(node),
      operands_(std::move(operands)),
      host_value_(std::move(host_value)),
      running_(running),
      results_(node.results.size()) {}

const Type& InferContext::type(int i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return *operands_[static_cast<size_t>(i)];
}

const State& InferContext::state(int i) const {
  if (static_cast<size_t>(i) >= node_.states.size()) fail("a state is missing");
  return program_.states[static_cast<size_t>(node_.states[static_cast<size_t>(i)])];
}

const Tensor* InferContext::host_value(int i) const {
  const Tensor* value = has(i) && host_value_ ? host_value_(i) : nullptr;
  if (!value && running_ && has(i)) throw NeedHostValue{i};
  return value;
}

void InferContext::result(int i, Type type) {
  if (static_cast<size_t>(i) >= results_.size())
    fail(fmt::format("it has {} results, {} are needed", results_.size(), i + 1));
  if (type.rank() > kMaxRank) fail(fmt::format("a result of rank {} (at most {})", type.rank(), kMaxRank));
  results_[static_cast<size_t>(i)] = std::move(type);
}

void InferContext::fail(const std::string& message) const {
  std::string operands;
  for (const Type* t : operands_)
    operands += (operands.empty() ? "" : ", ") + (t ? show(*t) : std::string("_"));
  throw error(ErrorKind::ShapeMismatch, "{}({}): {}", info(node_.op).text_name, operands, message);
}

Dim InferContext::same(Dim a, Dim b, const char* what) const {
  if (a == b) return a;
  if (a.is_number() && b.is_number()) fail(fmt::format("{} differ: {} and {}", what, a.number(), b.number()));
  return a.is_number() ? a : b.is_number() ? b : a.is_symbol() ? a : b;
}

Dims InferContext::broadcast(const Dims& a, const Dims& b) const {
  Dims out(std::max(a.size(), b.size()));
  for (size_t i = 0; i < out.size(); i++) {
    const Dim x = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim y = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    Dim& d = out[out.size() - 1 - i];
    if (x == Dim(1))
      d = y;
    else if (y == Dim(1) || x == y)
      d = x;
    else if (x.is_number() && y.is_number())
      fail(fmt::format("axes of {} and {} do not broadcast", x.number(), y.number()));
    else
      d = x.is_number() ? x : y.is_number() ? y : Dim();
  }
  return out;
}

int InferContext::axis(int64_t axis, int rank) const {
  const int64_t a = axis < 0 ? axis + rank : axis;
  if (a < 0 || a >= rank) fail(fmt::format("axis {} of rank {}", axis, rank));
  return static_cast<int>(a);
}

namespace {

// What holds for both types.
Type common(const Type& a, const Type& b) {
  Type t{a.dtype, {}};
  t.known_rank = a.known_rank && b.known_rank && a.rank() == b.rank();
  if (t.known_rank)
    for (size_t i = 0; i < a.dims.size(); i++) t.dims.push_back(a.dims[i] == b.dims[i] ? a.dims[i] : Dim());
  return t;
}

// Where the rank of an operand is open, the rule is asked for every rank; what it says for all of those that
// it accepts holds.
std::vector<Type> types_of_open_rank(const Program& program, const Node& node,
                                     const std::vector<const Type*>& operands) {
  std::vector<Type> results;
  bool accepted = false;
  for (int rank = 0; rank <= kMaxRank; rank++) {
    std::vector<Type> guess(operands.size());
    std::vector<const Type*> pointers(operands.size(), nullptr);
    for (size_t i = 0; i < operands.size(); i++) {
      if (!operands[i]) continue;
      guess[i] = *operands[i];
      if (!guess[i].known_rank) {
        guess[i].known_rank = true;
        guess[i].dims.assign(static_cast<size_t>(rank), Dim());
      }
      pointers[i] = &guess[i];
    }
    InferContext context(program, node, std::move(pointers), {}, false);
    try {
      info(node.op).shape(context);
    } catch (const Error&) {
      if (rank == kMaxRank && !accepted) throw;
      continue;
    }
    if (!accepted) {
      results = context.results();
      accepted = true;
    } else {
      for (size_t i = 0; i < results.size(); i++) results[i] = common(results[i], context.results()[i]);
    }
  }
  return results;
}

}  // namespace

std::vector<Type> infer_types(const Program& program, const Graph& graph, const Node& node) {
  std::vector<const Type*> operands;
  for (ValueId id : node.operands) operands.push_back(id == kNone ? nullptr : &graph.value(id).type);
  auto constant = [&](int i) -> const Tensor* {
    return graph.value(node.operands[static_cast<size_t>(i)]).constant.get();
  };
  const OpInfo& row = info(node.op);
  if (!row.shape)
    throw error(ErrorKind::UnsupportedOp, "operator '{}' is reserved and has no kernel yet", row.text_name)
        .advise("cyb-llm status --ops lists the operators that run");
  for (const Type* t : operands)
    if (t && !t->known_rank && row.effect != Effect::control)
      return types_of_open_rank(program, node, operands);
  InferContext context(program, node, std::move(operands), constant, false);
  row.shape(context);
  return context.results();
}

}  // namespace cyb::ir
