// SPDX-License-Identifier: Apache-2.0
#include "base/checked.h"
#include "compile/passes.h"
#include "ir/infer.h"

namespace cyb::compile {

using namespace ir;

void renumber(Graph& graph) {
  for (Value& v : graph.values)
    if (v.kind == Value::Kind::result) v.node = -1;
  // Values that a node reads, its regions' outer values included.
  auto reads = [&](const Node& node) {
    std::vector<ValueId> ids;
    for (ValueId id : node.operands)
      if (id != kNone) ids.push_back(id);
    for (const auto& region : node.regions)
      for (const Value& v : region->values)
        if (v.kind == Value::Kind::outer) ids.push_back(v.outer);
    return ids;
  };
  for (size_t i = 0; i < graph.nodes.size(); i++)
    for (ValueId id : graph.nodes[i].results) graph.value(id).node = static_cast<int>(i);
  // Depth-first from each node in order keeps an order that is already right.
  std::vector<int> order, mark(graph.nodes.size(), 0);
  order.reserve(graph.nodes.size());
  std::vector<std::pair<int, size_t>> stack;
  std::vector<std::vector<ValueId>> operands(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); i++) operands[i] = reads(graph.nodes[i]);
  for (size_t root = 0; root < graph.nodes.size(); root++) {
    if (mark[root]) continue;
    stack.emplace_back(static_cast<int>(root), 0);
    mark[root] = 1;
    while (!stack.empty()) {
      auto& [n, next] = stack.back();
      const auto& ids = operands[static_cast<size_t>(n)];
      if (next == ids.size()) {
        mark[static_cast<size_t>(n)] = 2;
        order.push_back(n);
        stack.pop_back();
        continue;
      }
      const Value& v = graph.value(ids[next++]);
      if (v.kind != Value::Kind::result || v.node < 0) continue;
      int& m = mark[static_cast<size_t>(v.node)];
      if (m == 1)
        throw error(ErrorKind::InvalidFile, "graph '{}': value '{}' depends on itself", graph.name, v.name);
      if (m == 0) {
        m = 1;
        stack.emplace_back(v.node, 0);
      }
    }
  }
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (int n : order) nodes.push_back(std::move(graph.nodes[static_cast<size_t>(n)]));
  graph.nodes = std::move(nodes);
  for (size_t i = 0; i < graph.nodes.size(); i++)
    for (ValueId id : graph.nodes[i].results) graph.value(id).node = static_cast<int>(i);
}

void remove_dead(Graph& graph) {
  for (;;) {
    const std::vector<int> uses = graph.use_counts();
    const size_t before = graph.nodes.size();
    std::erase_if(graph.nodes, [&](const Node& node) {
      const Effect effect = info(node.op).effect;
      if (effect == Effect::state && !node.states.empty()) return false;
      // A region may write states.
      if (effect == Effect::control) return false;
      for (ValueId id : node.results)
        if (uses[static_cast<size_t>(id)] > 0) return false;
      return true;
    });
    if (graph.nodes.size() == before) break;
  }
  renumber(graph);
}

namespace {
bool foldable(const Node& node) {
  const Effect effect = info(node.op).effect;
  return effect == Effect::pure || effect == Effect::data;
}

// Whether a value is small enough to be kept. Sizes come from the graph and may be any.
bool is_small(const Type& t) {
  constexpr uint64_t kMostElements = 65536;
  if (!t.is_concrete()) return false;
  uint64_t n = 1;
  const Shape shape = shape_of(t);
  for (const int64_t dim : shape)
    if (dim == 0) return true;
  for (const int64_t dim : shape)
    if (!checked_mul(n, static_cast<uint64_t>(dim), &n) || n > kMostElements) return false;
  return true;
}
}  // namespace

void fold(const Program& program, Graph& graph, const Evaluator& evaluate) {
  for (Node& node : graph.nodes) {
    for (auto& region : node.regions) {
      // What became constant outside is constant inside.
      for (Value& v : region->values)
        if (v.kind == Value::Kind::outer && !v.constant) v.constant = graph.value(v.outer).constant;
      fold(program, *region, evaluate);
    }
    if (!foldable(node)) continue;
    std::vector<const Tensor*> operands;
    bool constant = true;
    for (ValueId id : node.operands) {
      const Tensor* t = id == kNone ? nullptr : graph.value(id).constant.get();
      if (id != kNone && !t) constant = false;
      operands.push_back(t);
    }
    // The shape of a value is known without its content.
    if (node.op == Op::ShapeOf && graph.value(node.operands[0]).type.is_concrete()) {
      const Shape shape = shape_of(graph.value(node.operands[0]).type);
      graph.value(node.results[0]).constant =
          std::make_shared<Tensor>(Tensor::i64({shape.rank()}, {shape.begin(), shape.end()}));
      continue;
    }
    if (!constant || node.operands.empty()) continue;
    const std::vector<Type> types = infer_types(program, graph, node);
    std::vector<Tensor> results;
    for (const Type& t : types) {
      if (!is_small(t)) break;
      results.emplace_back(t.dtype, shape_of(t));
    }
    if (results.size() != types.size()) continue;
    evaluate(program, node, operands, results);
    for (size_t i = 0; i < results.size(); i++) {
      Value& v = graph.value(node.results[i]);
      v.type = types[i];
      v.constant = std::make_shared<Tensor>(std::move(results[i]));
    }
  }
  // Values that became constants need no node.
  for (Node& node : graph.nodes) {
    if (!foldable(node)) continue;
    bool all = !node.results.empty();
    for (ValueId id : node.results) all = all && graph.value(id).constant;
    if (!all) continue;
    for (ValueId id : node.results) {
      graph.value(id).kind = Value::Kind::constant;
      graph.value(id).node = -1;
    }
    node.results.clear();
  }
  std::erase_if(graph.nodes, [](const Node& n) { return n.results.empty() && foldable(n); });
  renumber(graph);
}

}  // namespace cyb::compile
