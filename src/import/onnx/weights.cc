// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/weights.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace cyb::onnx {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::Value;
using ir::ValueId;
using Kind = Value::Kind;

constexpr int64_t kLiteralElements = 64;
// Integers and bools that decide shapes are read on the host (docs/ir.md, "Host values").
constexpr int64_t kHostElements = 1024;

size_t at(ValueId id) { return static_cast<size_t>(id); }

// Keeps what the outputs need, values renumbered. Inputs stay.
void compact(Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (const ValueId id : graph.outputs) needed[at(id)] = true;
  std::vector<bool> keep(graph.nodes.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    for (const ValueId id : node.results) keep[i] = keep[i] || needed[at(id)];
    if (!keep[i]) continue;
    for (const ValueId id : node.operands)
      if (id != kNone) needed[at(id)] = true;
    for (const auto& region : node.regions) {
      compact(*region);
      for (const Value& v : region->values)
        if (v.kind == Kind::outer) needed[at(v.outer)] = true;
    }
  }
  for (const ValueId id : graph.inputs) needed[at(id)] = true;
  std::vector<Node> nodes;
  for (size_t i = 0; i < graph.nodes.size(); i++) {
    if (!keep[i]) continue;
    for (const ValueId id : graph.nodes[i].results) needed[at(id)] = true;
    nodes.push_back(std::move(graph.nodes[i]));
  }
  std::vector<ValueId> place(graph.values.size(), kNone);
  std::vector<Value> values;
  for (size_t i = 0; i < graph.values.size(); i++) {
    if (!needed[i]) continue;
    place[i] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph.values[i]));
  }
  const auto move = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids)
      if (id != kNone) id = place[at(id)];
  };
  for (size_t i = 0; i < nodes.size(); i++) {
    move(nodes[i].operands);
    move(nodes[i].results);
    for (const ValueId id : nodes[i].results) values[at(id)].node = static_cast<int>(i);
    for (const auto& region : nodes[i].regions)
      for (Value& v : region->values)
        if (v.kind == Kind::outer) v.outer = place[at(v.outer)];
  }
  move(graph.inputs);
  move(graph.outputs);
  graph.values = std::move(values);
  graph.nodes = std::move(nodes);
}

// Which values decide shapes: host operands, and what such are computed from.
std::vector<bool> shape_values(const Graph& graph) {
  std::vector<bool> host(graph.values.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const ir::OpInfo& row = ir::info(node.op);
    bool decides = false;
    for (const ValueId id : node.results) decides = decides || host[at(id)];
    for (size_t k = 0; k < node.operands.size(); k++) {
      const ValueId id = node.operands[k];
      if (id == kNone) continue;
      if (decides || (k < 32 && (row.host_operands >> k & 1))) host[at(id)] = true;
    }
    for (const auto& region : node.regions) {
      const std::vector<bool> inner = shape_values(*region);
      for (size_t k = 0; k < region->values.size(); k++)
        if (region->values[k].kind == Kind::outer && inner[k]) host[at(region->values[k].outer)] = true;
    }
  }
  return host;
}

class Placer {
 public:
  explicit Placer(ir::Program& program) {
    for (const Graph& graph : program.graphs) take_names(graph);
  }

  void place(Graph& graph) {
    const std::vector<bool> host = shape_values(graph);
    std::vector<ValueId> same(graph.values.size());
    std::unordered_map<std::string, ValueId> here;  // weights of this graph
    for (size_t i = 0; i < graph.values.size(); i++) {
      same[i] = static_cast<ValueId>(i);
      Value& v = graph.values[i];
      if (v.kind == Kind::weight) same[i] = here.try_emplace(v.name, static_cast<ValueId>(i)).first->second;
      if (v.kind != Kind::constant) continue;
      if (is_literal(*v.constant, host[i])) {
        v.name = literal_name();
        continue;
      }
      v.kind = Kind::weight;
      v.name = weight_name(v.constant, v.name);
      v.constant.reset();
      same[i] = here.try_emplace(v.name, static_cast<ValueId>(i)).first->second;
    }
    replace(graph, same);
    for (Node& node : graph.nodes)
      for (const auto& region : node.regions) {
        outer_weights(graph, *region);
        place(*region);
      }
  }

  std::vector<GraphWeight> weights;

 private:
  void take_names(const Graph& graph) {
    for (const Value& v : graph.values)
      if (v.kind == Kind::input || v.kind == Kind::result) names_.insert(v.name);
    for (const Node& node : graph.nodes)
      for (const auto& region : node.regions) take_names(*region);
  }

  static bool is_literal(const Tensor& t, bool host) {
    if (t.elements() <= kLiteralElements || t.type() == DType::string) return true;
    return host && !is_float(t.type()) && t.elements() <= kHostElements;
  }

  std::string literal_name() {
    for (;;) {
      std::string name = fmt::format("c{}", next_++);
      if (names_.insert(name).second) return name;
    }
  }

  // Equal tensors are one weight.
  std::string weight_name(const std::shared_ptr<const Tensor>& value, const std::string& hint) {
    if (const auto it = by_pointer_.find(value.get()); it != by_pointer_.end()) return it->second;
    const std::string_view bytes(static_cast<const char*>(value->data()), value->bytes());
    const size_t hash = std::hash<std::string_view>()(bytes);
    for (auto [it, end] = by_hash_.equal_range(hash); it != end; ++it)
      if (*weights[it->second].value == *value) return weights[it->second].name;
    const std::string wanted = hint.empty() ? "constant" : hint;
    std::string name = wanted;
    for (int64_t i = 1; !weight_names_.insert(name).second; i++) name = fmt::format("{}_{}", wanted, i);
    by_hash_.emplace(hash, weights.size());
    weights.push_back({name, value});
    by_pointer_.emplace(value.get(), name);
    return name;
  }

  static void replace(Graph& graph, const std::vector<ValueId>& same) {
    for (Node& node : graph.nodes) {
      for (ValueId& id : node.operands)
        if (id != kNone) id = same[at(id)];
      for (const auto& region : node.regions)
        for (Value& v : region->values)
          if (v.kind == Kind::outer) v.outer = same[at(v.outer)];
    }
    for (ValueId& id : graph.outputs) id = same[at(id)];
  }

  // A weight of the enclosing graph is a weight of the region.
  static void outer_weights(const Graph& graph, Graph& region) {
    for (Value& v : region.values) {
      if (v.kind != Kind::outer) continue;
      const Value& source = graph.value(v.outer);
      v.name = source.name;
      v.constant = source.constant;
      if (source.kind != Kind::weight) continue;
      v.kind = Kind::weight;
      v.outer = kNone;
    }
  }

  std::unordered_set<std::string> names_, weight_names_;
  std::unordered_map<const Tensor*, std::string> by_pointer_;
  std::unordered_multimap<size_t, size_t> by_hash_;
  int64_t next_ = 0;
};

class TensorSource final : public SourceTensor {
 public:
  explicit TensorSource(const GraphWeight& w)
      : SourceTensor(w.name, {w.value->shape().begin(), w.value->shape().end()},
                     cyb::to_string(w.value->type()), w.name, w.value->bytes()),
        value_(w.value) {}

  DType type() const override { return value_->type(); }
  bool is_half() const override { return type() == DType::f16 || type() == DType::bf16; }

  void read(int64_t first, int64_t count, float* out) const override {
    const auto from = static_cast<size_t>(first * row_length()),
               n = static_cast<size_t>(count * row_length());
    if (type() == DType::f32) {
      std::copy_n(value_->as<float>() + from, n, out);
      return;
    }
    for (size_t i = 0; i < n; i++) out[i] = static_cast<float>(value_->real(from + i));
  }
  void read_integers(int64_t first, int64_t count, int64_t* out) const override {
    const auto from = static_cast<size_t>(first * row_length()),
               n = static_cast<size_t>(count * row_length());
    for (size_t i = 0; i < n; i++) out[i] = value_->integer(from + i);
  }
  void release(int64_t, int64_t) const override {}

 private:
  std::shared_ptr<const Tensor> value_;
};

}  // namespace

std::vector<GraphWeight> place_constants(ir::Program& program, std::vector<std::string>* warnings) {
  for (Graph& graph : program.graphs) compact(graph);
  Placer placer(program);
  for (Graph& graph : program.graphs) {
    placer.place(graph);
    compact(graph);
  }
  for (const GraphWeight& w : placer.weights)
    if (w.value->type() == DType::f64)
      warnings->push_back(fmt::format("{} holds 64-bit floats; they are kept as 32-bit ones", w.name));
  return std::move(placer.weights);
}

std::unique_ptr<SourceTensor> weight_source(const GraphWeight& weight) {
  return std::make_unique<TensorSource>(weight);
}

}  // namespace cyb::onnx
