// SPDX-License-Identifier: Apache-2.0
#include "runtime/segment.h"

namespace cyb {

using compile::Slot;

namespace {

// Values made by nodes of one step and read by its nodes alone, under any name.
class InnerValues {
 public:
  InnerValues(const ir::Graph& graph, const compile::SegmentPlan& plan)
      : graph_(graph), plan_(plan), reads_(graph.values.size()), here_(graph.values.size()) {
    for (const ir::Node& n : graph.nodes)
      if (n.op != ir::Op::ShapeOf) count(n, reads_);  // told by the plan, from no memory
    for (ir::ValueId id : graph.outputs) reads_[root(id)]++;
  }

  void enter(const std::vector<int>& nodes) {
    here_.assign(here_.size(), 0);
    made_.assign(here_.size(), false);
    for (int index : nodes) {
      const ir::Node& n = graph_.nodes[static_cast<size_t>(index)];
      count(n, here_);
      for (ir::ValueId id : n.results) made_[static_cast<size_t>(id)] = true;
    }
    // Views make nothing: what they read is read through them.
    for (size_t i = static_cast<size_t>(plan_.begin); i < static_cast<size_t>(plan_.end); i++) {
      const ir::Node& n = graph_.nodes[i];
      if (compile::is_view(n) && plan_.values[static_cast<size_t>(n.results[0])].root != ir::kNone)
        count(n, here_);
    }
  }

  // The name of an inner value, else -1.
  int name(ir::ValueId id) const {
    const size_t r = root(id);
    return made_[r] && here_[r] == reads_[r] ? static_cast<int>(r) : -1;
  }

 private:
  size_t root(ir::ValueId id) const {
    const ir::ValueId r = plan_.values[static_cast<size_t>(id)].root;
    return static_cast<size_t>(r == ir::kNone ? id : r);
  }
  void count(const ir::Node& node, std::vector<int>& to) const {
    for (ir::ValueId id : node.operands)
      if (id != ir::kNone) to[root(id)]++;
    for (const auto& region : node.regions)
      for (const ir::Value& v : region->values)
        if (v.kind == ir::Value::Kind::outer) to[root(v.outer)]++;
  }

  const ir::Graph& graph_;
  const compile::SegmentPlan& plan_;
  std::vector<int> reads_, here_;
  std::vector<bool> made_;
};

}  // namespace

GraphRunner::Segment::Segment(compile::SegmentPlan p, const compile::CompiledGraph& graph,
                              RunContext& context, const Locations& before, Arena& arena)
    : plan(std::move(p)), locations(before) {
  const auto& backends = context.settings.backends;
  arenas.resize(backends.size());
  arena.buffers.resize(backends.size());
  for (size_t b = 0; b < backends.size(); b++) {
    const uint64_t bytes = plan.arenas[b].bytes;
    auto& shared = arena.buffers[b];
    if (bytes > 0 && (!shared || shared->size() < bytes)) shared = backends[b]->allocate(bytes);
    if (bytes > 0) arenas[b] = shared;
  }
  for (const Slot& slot : plan.slots) {
    const auto b = static_cast<size_t>(slot.backend);
    locations[static_cast<size_t>(slot.value)][b] = {arenas[b].get(), slot.offset};
  }
  for (size_t id = 0; id < plan.values.size(); id++)
    if (plan.values[id].root != ir::kNone)
      locations[id] = locations[static_cast<size_t>(plan.values[id].root)];

  // Before kernels are prepared: they may look at operands that decide shapes.
  upload(context);
  const ir::Graph& g = graph.graph;
  InnerValues inner(g, plan);
  auto operand = [&](ir::ValueId id, size_t b, const ir::Node& node, size_t index) {
    Operand o;
    if (id == ir::kNone) return o;
    const ir::Value& v = g.value(id);
    if (v.kind == ir::Value::Kind::weight) {
      o.weight =
          context.weights->get(*backends[b], v.name, backends[b]->weight_role(node, static_cast<int>(index)));
      o.dtype = v.type.dtype;
      o.shape = shape_of(v.type);
      return o;
    }
    const compile::ValueState& state = plan.values[static_cast<size_t>(id)];
    o.dtype = state.dtype;
    o.shape = state.shape;
    o.buffer = locations[static_cast<size_t>(id)][b].buffer;
    o.offset = locations[static_cast<size_t>(id)][b].offset;
    o.inner = inner.name(id);
    return o;
  };
  for (const compile::Step& planned : plan.steps) {
    Step step;
    step.backend = planned.backend;
    const auto b = static_cast<size_t>(planned.backend);
    if (planned.copy != ir::kNone) {
      const auto id = static_cast<size_t>(planned.copy);
      step.from_backend = planned.from;
      step.from = locations[id][static_cast<size_t>(planned.from)];
      step.to = locations[id][b];
      step.bytes = static_cast<uint64_t>(plan.values[id].shape.elements()) * size_of(plan.values[id].dtype);
    } else {
      inner.enter(planned.nodes);
      std::vector<NodeCall> calls;
      for (int index : planned.nodes) {
        const ir::Node& n = g.nodes[static_cast<size_t>(index)];
        NodeCall call;
        call.program = graph.program;
        call.node = &n;
        call.name = n.results.empty() ? ir::info(n.op).text_name : g.value(n.results[0]).name;
        for (size_t k = 0; k < n.operands.size(); k++)
          call.operands.push_back(operand(n.operands[k], b, n, k));
        for (ir::ValueId id : n.results) call.results.push_back(operand(id, b, n, 0));
        for (int s : n.states) call.states.push_back(context.states[static_cast<size_t>(s)]);
        call.random = &context.random;
        calls.push_back(std::move(call));
      }
      step.run = backends[b]->compile(calls, context.settings.precision);
    }
    steps.push_back(std::move(step));
  }
}

void GraphRunner::Segment::upload(RunContext& context) const {
  for (const Slot& slot : plan.slots) {
    if (slot.fill != Slot::Fill::once) continue;
    const auto b = static_cast<size_t>(slot.backend);
    const Tensor& t = *plan.values[static_cast<size_t>(slot.value)].host;
    context.settings.backends[b]->write(*arenas[b], slot.offset, t.data(), t.bytes());
  }
}

void GraphRunner::Segment::enqueue(RunContext& context, std::vector<uint8_t>& staging) const {
  const auto& backends = context.settings.backends;
  for (const Step& step : steps) {
    if (step.run) {
      step.run->enqueue();
      continue;
    }
    staging.resize(step.bytes);
    backends[static_cast<size_t>(step.from_backend)]->read(*step.from.buffer, step.from.offset,
                                                           staging.data(), step.bytes);
    backends[static_cast<size_t>(step.backend)]->write(*step.to.buffer, step.to.offset, staging.data(),
                                                       step.bytes);
  }
}

}  // namespace cyb
