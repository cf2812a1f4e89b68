// SPDX-License-Identifier: Apache-2.0
#include "compile/compiled.h"
#include "ir/infer.h"
#include "ops/text/strings.h"

namespace cyb::compile {

using namespace ir;

namespace {

bool takes(const Settings& s, size_t backend, const Program& program, const Graph& graph, const Node& node,
           std::string* why) {
  std::vector<const Type*> types;
  std::vector<const TensorSpec*> weights;
  for (ValueId id : node.operands) {
    types.push_back(id == kNone ? nullptr : &graph.value(id).type);
    const bool weight = id != kNone && graph.value(id).kind == Value::Kind::weight;
    weights.push_back(weight ? s.find_weight(graph.value(id).name) : nullptr);
  }
  return s.backends[backend]->supports({program, graph, node, types, weights, s.precision}, why);
}

void check_weights(const Graph& graph, const Settings& s) {
  for (const Value& v : graph.values) {
    if (v.kind != Value::Kind::weight) continue;
    const TensorSpec* spec = s.find_weight(v.name);
    if (!spec)
      throw error(ErrorKind::MissingTensor, "graph '{}' needs the tensor '{}', which the file does not have",
                  graph.name, v.name);
    bool same = spec->shape.size() == v.type.dims.size() && spec->type == v.type.dtype;
    for (size_t i = 0; same && i < spec->shape.size(); i++) same = v.type.dims[i] == Dim(spec->shape[i]);
    if (!same) {
      Type have{spec->type, {}};
      for (int64_t d : spec->shape) have.dims.emplace_back(d);
      throw error(ErrorKind::ShapeMismatch, "tensor '{}' is {} in the file, {} in graph '{}'", v.name,
                  to_string(have, {}), to_string(v.type, {}), graph.name);
    }
  }
}

// Values whose content decides shapes, and what they are computed from.
std::vector<bool> find_host_needed(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& n = graph.nodes[i];
    const OpInfo& row = info(n.op);
    bool wanted = false;
    for (ValueId id : n.results) wanted = wanted || needed[static_cast<size_t>(id)];
    for (size_t k = 0; k < n.operands.size(); k++) {
      const ValueId id = n.operands[k];
      if (id == kNone) continue;
      // Nodes whose shapes depend on content run on the host; plans depend on the shapes that come out.
      const bool decides = row.effect != Effect::data && k < 32 && (row.host_operands >> k & 1);
      const bool computes = wanted && row.effect == Effect::pure && n.op != Op::ShapeOf;
      if (decides || computes) needed[static_cast<size_t>(id)] = true;
    }
  }
  return needed;
}

std::unique_ptr<CompiledGraph> place(const Program& program, Graph graph, const Settings& s,
                                     const std::vector<int>& state_place) {
  auto out = std::make_unique<CompiledGraph>();
  out->program = &program;
  out->regions.resize(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); i++) {
    const Node& node = graph.nodes[i];
    std::string fell;
    int chosen = kHost;
    if (info(node.op).effect == Effect::control) {
      for (const auto& region : node.regions)
        out->regions[i].push_back(place(program, *region, s, state_place));
    } else if (info(node.op).effect == Effect::data) {
      // The executor evaluates it on the host.
    } else if (touches_strings(graph, node)) {
      if (!takes_strings(node.op))
        throw error(ErrorKind::UnsupportedOp, "'{}' ({}) is of strings",
                    node.results.empty() ? graph.name : graph.value(node.results[0]).name,
                    info(node.op).text_name)
            .advise("strings can be moved, selected and compared; do the rest outside the graph");
    } else {
      chosen = -2;
      const size_t first =
          node.states.empty() ? 0 : static_cast<size_t>(state_place[static_cast<size_t>(node.states[0])]);
      for (size_t b = first; b < s.backends.size() && chosen == -2; b++) {
        if (!node.backend.empty() && node.backend != s.backends[b]->name() && b + 1 < s.backends.size())
          continue;
        std::string why;
        if (takes(s, b, program, graph, node, &why))
          chosen = static_cast<int>(b);
        else
          fell += (fell.empty() ? "" : "; ") + s.backends[b]->name() + ": " + why;
        if (!node.states.empty()) break;
      }
      if (chosen == -2)
        throw error(ErrorKind::UnsupportedOp, "no backend takes '{}' ({})",
                    node.results.empty() ? graph.name : graph.value(node.results[0]).name, fell)
            .advise("'{}' lacks a kernel for these types: cyb-llm status --ops lists what there is",
                    info(node.op).text_name);
    }
    out->place.push_back(chosen);
    out->fell.push_back(std::move(fell));
  }
  out->host_needed = find_host_needed(graph);
  out->graph = std::move(graph);
  return out;
}

}  // namespace

std::vector<int> place_states(const Program& program, const Settings& s) {
  std::vector<int> home(program.states.size(), 0);
  std::function<void(const Graph&)> visit = [&](const Graph& graph) {
    for (const Node& node : graph.nodes) {
      for (int state : node.states) {
        int& b = home[static_cast<size_t>(state)];
        while (static_cast<size_t>(b) + 1 < s.backends.size() &&
               !takes(s, static_cast<size_t>(b), program, graph, node, nullptr))
          b++;
      }
      for (const auto& region : node.regions) visit(*region);
    }
  };
  for (const Graph& graph : program.graphs) visit(graph);
  return home;
}

std::unique_ptr<CompiledGraph> compile_graph(const Program& program, const Graph& graph, const Settings& s,
                                             const std::vector<int>& state_place) {
  check_weights(graph, s);
  Graph g = graph;
  if (s.evaluate) fold(program, g, s.evaluate);
  remove_dead(g);
  const size_t before = g.nodes.size();
  FusionLog log;
  if (s.fusion) optimize(program, g, log);
  // What passes made of constants is constant.
  if (s.fusion && s.evaluate) fold(program, g, s.evaluate);
  // What the preferred backend cannot run fused, it may run in parts.
  expand(program, g,
         [&](const Graph& where, const Node& node) { return takes(s, 0, program, where, node, nullptr); });
  auto out = place(program, std::move(g), s, state_place);
  out->nodes_before_fusion = before;
  out->fusions = std::move(log);
  return out;
}

}  // namespace cyb::compile
