// SPDX-License-Identifier: Apache-2.0
#include "compile/rewrite.h"

#include <cmath>
#include <numeric>

#include "ir/ops/common.h"

namespace cyb::compile {

using namespace ir;

Node* Rewriter::producer(ValueId id) {
  if (id == kNone) return nullptr;
  const Value& v = graph.value(id);
  if (v.kind != Value::Kind::result || v.node < 0) return nullptr;
  return &graph.nodes[static_cast<size_t>(v.node)];
}

Node* Rewriter::producer(ValueId id, Op op) {
  Node* n = producer(id);
  return n && n->op == op ? n : nullptr;
}

bool Rewriter::is_weight(ValueId id) const {
  return id != kNone && graph.value(id).kind == Value::Kind::weight;
}

bool Rewriter::is_fixed(ValueId id) const {
  return id != kNone && (graph.value(id).kind == Value::Kind::weight || graph.value(id).constant);
}

std::optional<double> Rewriter::scalar(ValueId id) const {
  if (id == kNone) return std::nullopt;
  const Tensor* t = graph.value(id).constant.get();
  if (!t || t->elements() != 1 || t->type() == DType::string) return std::nullopt;
  return t->real(0);
}

bool Rewriter::is_scalar(ValueId id, double value) const {
  const auto s = scalar(id);
  return s && std::fabs(*s - value) <= 4e-7 * std::fabs(value);
}

ValueId Rewriter::beside_scalar(const Node& node, double value, bool exactly) const {
  if (node.operands.size() != 2) return kNone;
  for (size_t side = 0; side < 2; side++)
    if ((exactly ? scalar(node.operands[side]) == value : is_scalar(node.operands[side], value)) &&
        type(node.operands[1 - side]) == type(node.results[0]))
      return node.operands[1 - side];
  return kNone;
}

bool Rewriter::same_type(ValueId a, ValueId b, bool certain) const {
  const Type &x = type(a), &y = type(b);
  if (x.dtype != y.dtype || !x.known_rank || !y.known_rank || x.rank() != y.rank()) return false;
  for (size_t i = 0; i < x.dims.size(); i++) {
    const Dim p = x.dims[i], q = y.dims[i];
    if (certain ? !(p == q) || p.is_unknown() : p.is_number() && q.is_number() && !(p == q)) return false;
    // A 1 beside an open axis may broadcast.
    if (!certain && !(p == q) && (p == Dim(1) || q == Dim(1))) return false;
  }
  return true;
}

ValueId Rewriter::emit(Node n) {
  const ValueId result = graph.add_value("f" + std::to_string(graph.values.size()), {});
  n.results = {result};
  graph.value(result).type = infer_types(program, graph, n)[0];
  added_.push_back(std::move(n));
  uses.push_back(0);
  return result;
}

void Rewriter::settle() {
  for (Node& n : added_) graph.nodes.push_back(std::move(n));
  added_.clear();
  if (!aliases_.empty()) {
    auto resolve = [&](ValueId id) {
      for (auto it = aliases_.find(id); it != aliases_.end(); it = aliases_.find(id)) id = it->second;
      return id;
    };
    for (Node& n : graph.nodes) {
      for (ValueId& id : n.operands)
        if (id != kNone) id = resolve(id);
      for (auto& region : n.regions)
        for (Value& v : region->values)
          if (v.kind == Value::Kind::outer) v.outer = resolve(v.outer);
    }
    for (ValueId& id : graph.outputs) id = resolve(id);
    aliases_.clear();
  }
  remove_dead(graph);
  uses = graph.use_counts();
}

std::vector<int64_t> permutation(const Node& node, const Type& operand) {
  std::vector<int64_t> axes = node.as<AxesAttrs>().axes;
  if (!operand.known_rank) return {};
  const int64_t rank = operand.rank();
  if (node.op == Op::Transpose) {
    std::vector<int64_t> out(static_cast<size_t>(rank));
    std::iota(out.begin(), out.end(), 0);
    if (axes.empty()) axes = {-2, -1};
    for (int64_t& a : axes) a = a < 0 ? a + rank : a;
    std::swap(out[static_cast<size_t>(axes[0])], out[static_cast<size_t>(axes[1])]);
    return out;
  }
  for (int64_t& a : axes) a = a < 0 ? a + rank : a;
  return axes;
}

}  // namespace cyb::compile
