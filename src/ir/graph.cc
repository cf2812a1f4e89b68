// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <cmath>
#include <set>

namespace cyb::ir {
namespace {

// Flattens the fields of a node's attributes into text, for comparison.
class Dump final : public FieldVisitor {
 public:
  std::string out;
  void field(const char*, bool& v) override { add(v ? "1" : "0"); }
  void field(const char*, int64_t& v) override { add(std::to_string(v)); }
  void field(const char*, double& v) override { add(std::isnan(v) ? "nan" : fmt::format("{:a}", v)); }
  void field(const char*, std::string& v) override { add(fmt::format("{}:{}", v.size(), v)); }
  void field(const char*, DType& v) override { add(to_string(v)); }
  void field(const char*, std::vector<int64_t>& v) override {
    for (int64_t x : v) add(std::to_string(x));
    add("]");
  }
  void field(const char*, std::vector<double>& v) override {
    for (double x : v) add(fmt::format("{:a}", x));
    add("]");
  }
  void choice(const char*, int& index, std::span<const char* const>) override { add(std::to_string(index)); }

 private:
  void add(const std::string& text) { out += text + ","; }
};

}  // namespace

bool equal(const Attrs& a, const Attrs& b) {
  if (a.type() != b.type()) return false;
  Dump x, y;
  a.clone()->visit(x);
  b.clone()->visit(y);
  return x.out == y.out;
}

Node::Node(const Node& other)
    : op(other.op),
      operands(other.operands),
      results(other.results),
      states(other.states),
      attrs(other.attrs ? other.attrs->clone() : nullptr),
      backend(other.backend) {
  for (const auto& region : other.regions) regions.push_back(std::make_unique<Graph>(*region));
}

Node& Node::operator=(const Node& other) {
  if (this != &other) *this = Node(other);
  return *this;
}

ValueId Graph::add_input(std::string input_name, Type type) {
  Value v;
  v.kind = Value::Kind::input;
  v.type = std::move(type);
  v.name = std::move(input_name);
  values.push_back(std::move(v));
  inputs.push_back(static_cast<ValueId>(values.size()) - 1);
  return inputs.back();
}

ValueId Graph::add_weight(const std::string& weight, Type type) {
  for (size_t i = 0; i < values.size(); i++)
    if (values[i].kind == Value::Kind::weight && values[i].name == weight) return static_cast<ValueId>(i);
  Value v;
  v.kind = Value::Kind::weight;
  v.type = std::move(type);
  v.name = weight;
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_constant(std::string constant_name, Tensor tensor) {
  Value v;
  v.kind = Value::Kind::constant;
  v.type = concrete(tensor.type(), tensor.shape());
  v.name = std::move(constant_name);
  v.constant = std::make_shared<const Tensor>(std::move(tensor));
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_outer(ValueId outer, const Value& source) {
  for (size_t i = 0; i < values.size(); i++)
    if (values[i].kind == Value::Kind::outer && values[i].outer == outer) return static_cast<ValueId>(i);
  Value v;
  v.kind = Value::Kind::outer;
  v.type = source.type;
  v.name = source.name;
  v.outer = outer;
  v.constant = source.constant;
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

ValueId Graph::add_value(std::string value_name, Type type) {
  Value v;
  v.kind = Value::Kind::result;
  v.type = std::move(type);
  v.name = std::move(value_name);
  values.push_back(std::move(v));
  return static_cast<ValueId>(values.size()) - 1;
}

void Graph::add_output(std::string output_name, ValueId id) {
  outputs.push_back(id);
  output_names.push_back(std::move(output_name));
}

std::vector<int> Graph::use_counts() const {
  std::vector<int> uses(values.size(), 0);
  for (const Node& node : nodes) {
    for (ValueId id : node.operands)
      if (id != kNone) uses[static_cast<size_t>(id)]++;
    for (const auto& region : node.regions)
      for (const Value& v : region->values)
        if (v.kind == Value::Kind::outer) uses[static_cast<size_t>(v.outer)]++;
  }
  for (ValueId id : outputs) uses[static_cast<size_t>(id)]++;
  return uses;
}

int Program::symbol(std::string_view symbol_name, bool data) {
  for (size_t i = 0; i < symbols.size(); i++)
    if (symbols[i].name == symbol_name) return static_cast<int>(i);
  symbols.push_back({std::string(symbol_name), data});
  return static_cast<int>(symbols.size()) - 1;
}

const Graph* Program::find(std::string_view graph_name) const {
  for (const Graph& g : graphs)
    if (g.name == graph_name) return &g;
  return nullptr;
}

int Program::find_state(std::string_view state_name) const {
  for (size_t i = 0; i < states.size(); i++)
    if (states[i].name == state_name) return static_cast<int>(i);
  return -1;
}

namespace {

void collect(const Graph& graph, std::map<std::string, size_t>& index, std::vector<WeightUse>& out) {
  const auto use_of = [&](const Value& v) -> WeightUse& {
    const auto [it, added] = index.try_emplace(v.name, out.size());
    if (added) out.push_back({v.name, v.type, false, false, false});
    return out[it->second];
  };
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.operands.size(); i++) {
      const ValueId id = node.operands[i];
      if (id == kNone || graph.value(id).kind != Value::Kind::weight) continue;
      const Value& v = graph.value(id);
      WeightUse& use = use_of(v);
      const std::string_view group = info(node.op).group;
      if (group == "conv" && i == 1) use.conv = true;
      if (node.op == Op::TokenEmbed && i == 1) use.lookup = use.matrix = true;
      if (group == "matmul" && v.type.rank() >= 2) use.matrix = true;
    }
    for (const auto& region : node.regions) collect(*region, index, out);
  }
  for (const ValueId id : graph.outputs)
    if (graph.value(id).kind == Value::Kind::weight) use_of(graph.value(id));
}

}  // namespace

std::vector<WeightUse> weight_uses(const Program& program) {
  std::map<std::string, size_t> index;
  std::vector<WeightUse> out;
  for (const Graph& graph : program.graphs) collect(graph, index, out);
  return out;
}

}  // namespace cyb::ir
