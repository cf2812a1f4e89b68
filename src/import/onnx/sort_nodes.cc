// SPDX-License-Identifier: Apache-2.0
// The order of nodes, with what their sub-graphs read from outside.
#include <string_view>

#include "base/error.h"
#include "import/onnx/graph_converter.h"
#include "import/onnx/onnx.pb.h"
#include "ir/text.h"

namespace cyb::onnx {
namespace {

using Names = std::unordered_set<std::string_view>;

// Adds the names that a graph reads and does not make itself.
void free_names(const GraphProto& graph, int depth, Names& out) {
  if (depth > ir::kMaxNesting)
    throw error(ErrorKind::UnsupportedModel, "graph '{}': sub-graphs are nested more than {} deep",
                clean_name(graph.name()), ir::kMaxNesting)
        .advise("export the model without such deep control flow");
  Names made, read;
  for (const ValueInfoProto& v : graph.input()) made.insert(v.name());
  for (const TensorProto& t : graph.initializer()) made.insert(t.name());
  for (const SparseTensorProto& t : graph.sparse_initializer()) made.insert(t.values().name());
  for (const NodeProto& node : graph.node()) {
    for (const std::string& name : node.output()) made.insert(name);
    for (const std::string& name : node.input())
      if (!name.empty()) read.insert(name);
    for (const AttributeProto& a : node.attribute()) {
      if (a.has_g()) free_names(a.g(), depth + 1, read);
      for (const GraphProto& g : a.graphs()) free_names(g, depth + 1, read);
    }
  }
  for (const ValueInfoProto& v : graph.output()) read.insert(v.name());
  for (const std::string_view name : read)
    if (!made.contains(name)) out.insert(name);
}

}  // namespace

std::vector<const NodeProto*> sort_nodes(const std::vector<const NodeProto*>& nodes,
                                         const std::function<bool(const std::string&)>& known, int depth) {
  std::unordered_map<std::string_view, size_t> maker;
  maker.reserve(nodes.size() * 2);
  for (size_t i = 0; i < nodes.size(); i++)
    for (const std::string& name : nodes[i]->output()) {
      if (name.empty()) continue;
      if (!maker.emplace(name, i).second || known(name))
        throw error(ErrorKind::InvalidFile, "{}: the name '{}' is made twice", describe_node(*nodes[i]),
                    clean_name(name));
    }
  std::vector<std::vector<size_t>> needs(nodes.size());
  for (size_t i = 0; i < nodes.size(); i++) {
    auto need = [&](std::string_view name) {
      if (const auto it = maker.find(name); it != maker.end()) needs[i].push_back(it->second);
    };
    for (const std::string& name : nodes[i]->input()) need(name);
    Names names;
    for (const AttributeProto& a : nodes[i]->attribute()) {
      if (a.has_g()) free_names(a.g(), depth + 1, names);
      for (const GraphProto& g : a.graphs()) free_names(g, depth + 1, names);
    }
    for (const std::string_view name : names) need(name);
  }
  // Depth first from each node in turn: an order that is right already stays.
  enum : uint8_t { fresh, open, done };
  std::vector<uint8_t> mark(nodes.size(), fresh);
  std::vector<const NodeProto*> order;
  order.reserve(nodes.size());
  std::vector<std::pair<size_t, size_t>> stack;
  for (size_t root = 0; root < nodes.size(); root++) {
    if (mark[root] != fresh) continue;
    stack.emplace_back(root, 0);
    mark[root] = open;
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      if (next == needs[node].size()) {
        mark[node] = done;
        order.push_back(nodes[node]);
        stack.pop_back();
        continue;
      }
      const size_t from = needs[node][next++];
      if (mark[from] == open)
        throw error(ErrorKind::InvalidFile, "{}: it depends on itself", describe_node(*nodes[from]))
            .advise("the graph has a cycle; export the model again");
      if (mark[from] == fresh) {
        mark[from] = open;
        stack.emplace_back(from, 0);
      }
    }
  }
  return order;
}

}  // namespace cyb::onnx
