// SPDX-License-Identifier: Apache-2.0
#include "compile/segment_plan.h"

#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/system_memory.h"
#include "ir/infer.h"

namespace cyb::compile {

using namespace ir;

bool is_view(const Node& node) {
  return node.op == Op::Reshape || node.op == Op::Unsqueeze || node.op == Op::Squeeze ||
         node.op == Op::Identity;
}

namespace {

constexpr int64_t kHostElements = 1024;

class Planner {
 public:
  Planner(const CompiledGraph& graph, const Settings& settings, std::vector<ValueState> values, int begin)
      : c(graph), g(graph.graph), s(settings), begin_(begin) {
    plan.begin = begin;
    plan.values = std::move(values);
    last_read_.assign(g.values.size(), -1);
    for (size_t i = 0; i < g.nodes.size(); i++)
      reads(g.nodes[i], [&](ValueId id) { last_read_[static_cast<size_t>(id)] = static_cast<int>(i); });
    for (ValueId id : g.outputs) last_read_[static_cast<size_t>(id)] = kForever;
  }

  SegmentPlan run() {
    size_t i = static_cast<size_t>(begin_);
    for (; i < g.nodes.size(); i++) {
      if (c.place[i] == kHost) {
        plan.stop = SegmentPlan::Stop::control;
        break;
      }
      if (!node(static_cast<int>(i))) break;
    }
    plan.end = static_cast<int>(i);
    if (i == g.nodes.size()) plan.stop = SegmentPlan::Stop::done;
    layout();
    return std::move(plan);
  }

 private:
  static constexpr int kForever = INT32_MAX;

  template <class F>
  static void reads(const Node& node, F&& f) {
    for (ValueId id : node.operands)
      if (id != kNone) f(id);
    for (const auto& region : node.regions)
      for (const Value& v : region->values)
        if (v.kind == Value::Kind::outer) f(v.outer);
  }

  ValueState& state(ValueId id) { return plan.values[static_cast<size_t>(id)]; }
  ValueId root(ValueId id) { return state(id).root == kNone ? id : state(id).root; }

  // Shapes may come from data: what no machine holds must not wrap, nor be asked for bit by bit.
  void check_size(const Shape& shape, DType dtype, ValueId id) const {
    static const uint64_t memory = usable_memory();
    uint64_t bytes = size_of(dtype);
    for (const int64_t d : shape)
      if (d < 0 || !checked_mul(bytes, static_cast<uint64_t>(d), &bytes) || bytes > (1ull << 46) ||
          (memory && bytes > memory))
        throw error(ErrorKind::OutOfMemory, "graph '{}', node '{}': no memory for a value of shape {}",
                    g.name, g.value(id).name, to_string(shape))
            .advise("look at the sizes that the inputs ask for");
  }

  // Plans one node; false where a value must be read first.
  bool node(int index) {
    const Node& n = g.nodes[static_cast<size_t>(index)];
    std::vector<Type> types(n.operands.size());
    std::vector<const Type*> pointers;
    for (size_t k = 0; k < n.operands.size(); k++) {
      const ValueId id = n.operands[k];
      if (id == kNone) {
        pointers.push_back(nullptr);
        continue;
      }
      const Value& v = g.value(id);
      types[k] = v.kind == Value::Kind::weight ? v.type : concrete(state(id).dtype, state(id).shape);
      pointers.push_back(&types[k]);
    }
    auto host = [&](int k) -> const Tensor* {
      const ValueState& v = state(n.operands[static_cast<size_t>(k)]);
      return v.fixed ? v.host.get() : nullptr;
    };
    InferContext context(*c.program, n, pointers, host, true);
    try {
      info(n.op).shape(context);
    } catch (const NeedHostValue& need) {
      plan.stop = SegmentPlan::Stop::host_value;
      plan.wanted = n.operands[static_cast<size_t>(need.operand)];
      return false;
    } catch (const Error& e) {
      throw e.at(
          fmt::format("graph '{}', node '{}'", g.name, n.results.empty() ? "" : g.value(n.results[0]).name));
    }
    for (size_t k = 0; k < n.results.size(); k++) {
      const Type& t = context.results()[k];
      ValueState& v = state(n.results[k]);
      v = {};
      // A dimension that stays open in a run is one that no rule can tell: probabilities over a state.
      if (!t.is_concrete())
        throw error(ErrorKind::UnsupportedOp, "node '{}': the shape {} is not known before it runs",
                    g.value(n.results[k]).name, to_string(t, c.program->symbols));
      v.known = true;
      v.dtype = t.dtype;
      v.shape = shape_of(t);
      check_size(v.shape, v.dtype, n.results[k]);
      v.on.assign(s.backends.size(), false);
    }
    if (on_host(n, types)) return true;
    if (is_view(n) && view(n)) return true;
    const int backend = c.place[static_cast<size_t>(index)];
    for (ValueId id : n.operands)
      if (id != kNone && g.value(id).kind != Value::Kind::weight) bring(id, backend, index);
    for (ValueId id : n.results) {
      state(id).on[static_cast<size_t>(backend)] = true;
      block(id, backend, index, Slot::Fill::computed);
    }
    // A node without results only has effects; it belongs to its backend's run all the same.
    if (plan.steps.empty() || plan.steps.back().copy != kNone || plan.steps.back().backend != backend) {
      plan.steps.emplace_back();
      plan.steps.back().backend = backend;
    }
    plan.steps.back().nodes.push_back(index);
    return true;
  }

  // Shape arithmetic: done here, with the plan.
  bool on_host(const Node& n, const std::vector<Type>& types) {
    if (info(n.op).effect != Effect::pure) return false;
    int64_t largest = 0;
    bool wanted = false, integers = true;
    for (ValueId id : n.results) {
      largest = std::max(largest, state(id).shape.elements());
      wanted = wanted || c.host_needed[static_cast<size_t>(id)];
      integers = integers && !is_float(state(id).dtype) && state(id).dtype != DType::string;
    }
    if (n.op == Op::ShapeOf) {
      const Shape shape = shape_of(types[0]);
      set_host(n.results[0], Tensor::i64({shape.rank()}, {shape.begin(), shape.end()}));
      return true;
    }
    if (!(wanted || integers) || largest > kHostElements || !s.evaluate) return false;
    std::vector<const Tensor*> operands;
    for (ValueId id : n.operands) {
      const ValueState* v = id == kNone ? nullptr : &state(id);
      if (v && (!v->host || !v->fixed)) return false;
      operands.push_back(v ? v->host.get() : nullptr);
    }
    std::vector<Tensor> results;
    for (ValueId id : n.results) results.emplace_back(state(id).dtype, state(id).shape);
    s.evaluate(*c.program, n, operands, results);
    for (size_t k = 0; k < results.size(); k++) set_host(n.results[k], std::move(results[k]));
    return true;
  }

  void set_host(ValueId id, Tensor value) {
    state(id).host = std::make_shared<const Tensor>(std::move(value));
    state(id).fixed = true;
  }

  // Shares the operand's memory where it has some.
  bool view(const Node& n) {
    const ValueId operand = n.operands[0], result = n.results[0];
    if (g.value(operand).kind == Value::Kind::weight) return false;
    const ValueState& from = state(operand);
    if (std::find(from.on.begin(), from.on.end(), true) == from.on.end()) {
      // Only the host has it: a constant is reshaped there, what changes from run to run by a kernel.
      if (!from.host || !from.fixed) return false;
      set_host(result, from.host->reshaped(state(result).shape));
      return true;
    }
    state(result).on = from.on;
    state(result).root = root(operand);
    return true;
  }

  // Makes the value present on a backend before node `index`.
  void bring(ValueId id, int backend, int index) {
    const ValueId r = root(id);
    if (state(r).on[static_cast<size_t>(backend)]) return;
    int from = -1;
    for (size_t b = 0; b < s.backends.size(); b++)
      if (state(r).on[b]) from = static_cast<int>(b);
    if (from >= 0) {
      Step step;
      step.backend = backend;
      step.copy = r;
      step.from = from;
      plan.steps.push_back(step);
      block(r, backend, index, Slot::Fill::computed);
      copies_.push_back({r, from, index});
    } else {
      if (!state(id).host)
        throw error(ErrorKind::InvalidFile, "graph '{}': value '{}' is read before it is made", g.name,
                    g.value(id).name);
      // Views of one host value each get their own memory.
      block(id, backend, begin_, state(id).fixed ? Slot::Fill::once : Slot::Fill::each_run);
      state(id).root = kNone;
      state(id).on[static_cast<size_t>(backend)] = true;
      return;
    }
    state(r).on[static_cast<size_t>(backend)] = true;
    // Views made earlier see the new place too.
    for (ValueState& v : plan.values)
      if (v.root == r) v.on = state(r).on;
  }

  void block(ValueId id, int backend, int first, Slot::Fill fill) {
    Slot slot;
    slot.value = id;
    slot.backend = backend;
    slot.bytes = static_cast<uint64_t>(state(id).shape.elements()) * size_of(state(id).dtype);
    slot.fill = fill;
    plan.slots.push_back(slot);
    first_.push_back(first);
  }

  // Lifetimes and offsets, once the segment's nodes are known.
  void layout() {
    std::vector<int> last(g.values.size(), -1);
    for (size_t id = 0; id < g.values.size(); id++) {
      const int read = last_read_[id];
      if (read < 0) continue;
      const ValueId r = root(static_cast<ValueId>(id));
      // What later segments read stays until this one's arena goes.
      last[static_cast<size_t>(r)] =
          std::max(last[static_cast<size_t>(r)], read >= plan.end ? kForever - 1 : read);
    }
    for (const Copy& copy : copies_)
      last[static_cast<size_t>(copy.value)] = std::max(last[static_cast<size_t>(copy.value)], copy.at);
    plan.arenas.resize(s.backends.size());
    for (size_t b = 0; b < s.backends.size(); b++) {
      std::vector<ArenaBlock> blocks;
      std::vector<size_t> index;
      for (size_t i = 0; i < plan.slots.size(); i++) {
        const Slot& slot = plan.slots[i];
        if (slot.backend != static_cast<int>(b)) continue;
        ArenaBlock block{slot.bytes, first_[i], std::max(first_[i], last[static_cast<size_t>(slot.value)]),
                         0};
        if (slot.fill == Slot::Fill::once) block.last = kForever - 1;
        blocks.push_back(block);
        index.push_back(i);
      }
      plan.arenas[b] = plan_arena(blocks);
      for (size_t i = 0; i < index.size(); i++) plan.slots[index[i]].offset = blocks[i].offset;
    }
  }

  struct Copy {
    ValueId value;
    int from, at;
  };
  const CompiledGraph& c;
  const Graph& g;
  const Settings& s;
  int begin_;
  SegmentPlan plan;
  std::vector<int> last_read_, first_;
  std::vector<Copy> copies_;
};

}  // namespace

SegmentPlan plan_segment(const CompiledGraph& graph, const Settings& settings, std::vector<ValueState> values,
                         int begin) {
  return Planner(graph, settings, std::move(values), begin).run();
}

}  // namespace cyb::compile
