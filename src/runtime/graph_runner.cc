// SPDX-License-Identifier: Apache-2.0
#include "runtime/graph_runner.h"

#include <algorithm>
#include <cstring>

#include "ir/infer.h"
#include "ir/ops/common.h"
#include "runtime/segment.h"

namespace cyb {

using namespace ir;
using compile::SegmentPlan;
using compile::Slot;
using compile::ValueState;

namespace {
constexpr size_t kPlansKept = 24;  // shape classes of one point in a graph
constexpr int64_t kKeyElements = 65536;
}  // namespace

// One run: values as they become known, from segment to segment.
class GraphRunner::Run {
 public:
  Run(GraphRunner& runner, std::span<const Tensor* const> inputs, const Outer& outer)
      : r_(runner),
        c_(runner.graph_),
        g_(runner.graph_.graph),
        ctx_(runner.context_),
        outer_(outer),
        inputs_(inputs),
        key_(runner.key_) {}

  void go(std::vector<Tensor>& outputs) {
    const size_t backends = ctx_.settings.backends.size();
    check_inputs();
    Chain* chain = r_.root_.get();
    r_.last_.clear();
    int position = 0;
    build_root_key();
    for (size_t depth = 0;; depth++) {
      if (r_.arenas_.size() <= depth) r_.arenas_.push_back(std::make_unique<Arena>());
      Arena& arena = *r_.arenas_[depth];
      chain = find(chain, position, backends, arena);
      const Segment& segment = *chain->segment;
      r_.last_.push_back(&segment);
      if (arena.holds != segment.serial) segment.upload(ctx_);
      arena.holds = segment.serial;
      execute(segment);
      current_ = &segment;
      learned_.clear();
      if (segment.plan.stop == SegmentPlan::Stop::done) break;
      position = segment.plan.end;
      if (segment.plan.stop == SegmentPlan::Stop::host_value) {
        const ValueId id = segment.plan.wanted;
        auto value = host(id);
        if (value->elements() > kKeyElements * 64)
          throw error(ErrorKind::UnsupportedModel, "value '{}' decides shapes and has {} elements",
                      g_.value(id).name, value->elements());
        key_.clear();
        append_content(*value);
        learned_.push_back({id, std::move(value), true, false});
      } else {
        key_.clear();
        control(position);
        position++;
      }
    }
    outputs.resize(g_.outputs.size());
    finish();
    for (size_t i = 0; i < g_.outputs.size(); i++) fetch(g_.outputs[i], outputs[i]);
  }

 private:
  void check_inputs() {
    if (inputs_.size() != g_.inputs.size())
      throw error(ErrorKind::Usage, "graph '{}' takes {} inputs, {} were given", g_.name, g_.inputs.size(),
                  inputs_.size());
    std::vector<int64_t>& symbols = r_.symbols_;
    symbols.assign(c_.program->symbols.size(), -1);
    for (size_t i = 0; i < inputs_.size(); i++) {
      const Value& v = g_.value(g_.inputs[i]);
      const Tensor& t = *inputs_[i];
      bool fits = t.type() == v.type.dtype;
      if (v.type.known_rank) {
        fits = fits && t.shape().rank() == v.type.rank();
        for (int a = 0; fits && a < v.type.rank(); a++) {
          const Dim d = v.type.dims[static_cast<size_t>(a)];
          if (d.is_number()) fits = d.number() == t.shape()[a];
          if (d.is_symbol() && !outer_) {
            int64_t& bound = symbols[static_cast<size_t>(d.symbol_index())];
            if (bound < 0) bound = t.shape()[a];
            fits = bound == t.shape()[a];
          }
        }
      }
      if (!fits)
        throw error(ErrorKind::ShapeMismatch, "graph '{}': input '{}' is {}, {} was given", g_.name, v.name,
                    to_string(v.type, c_.program->symbols), to_string(concrete(t.type(), t.shape()), {}));
    }
  }

  void append_shape(const Tensor& t) {
    key_.push_back(static_cast<int64_t>(t.type()) * 16 + t.shape().rank());
    for (int64_t d : t.shape()) key_.push_back(d);
  }
  void append_content(const Tensor& t) {
    append_shape(t);
    for (const std::string& s : t.strings()) {
      key_.push_back(static_cast<int64_t>(s.size()));
      for (const char ch : s) key_.push_back(ch);
    }
    if (t.type() == DType::string) return;
    for (int64_t i = 0; i < t.elements(); i++) {
      if (is_float(t.type())) {
        const double v = t.real(static_cast<size_t>(i));
        int64_t bits;
        std::memcpy(&bits, &v, sizeof bits);
        key_.push_back(bits);
      } else {
        key_.push_back(t.integer(static_cast<size_t>(i)));
      }
    }
  }
  void append(ValueId id, const Tensor& t) {
    if (c_.host_needed[static_cast<size_t>(id)] && t.elements() <= kKeyElements)
      append_content(t);
    else
      append_shape(t);
  }

  void build_root_key() {
    key_.clear();
    for (size_t i = 0; i < inputs_.size(); i++) append(g_.inputs[i], *inputs_[i]);
    if (!outer_) return;
    for (size_t id = 0; id < g_.values.size(); id++) {
      const Value& v = g_.values[id];
      if (v.kind != Value::Kind::outer || v.constant) continue;
      outers_[static_cast<ValueId>(id)] = outer_(v.outer);
      append(static_cast<ValueId>(id), *outers_[static_cast<ValueId>(id)]);
    }
  }

  // What the host learned of a value since the last segment; `whole`: also its type and shape.
  struct Learned {
    ValueId id;
    std::shared_ptr<const Tensor> value;
    bool fixed, whole;
  };

  // What is known before the next segment: only plans need it.
  void gather_states() {
    states_ = current_->plan.values;
    for (size_t id = 0; id < states_.size(); id++)
      if (states_[id].known && !states_[id].fixed)
        if (const Tensor* t = given(static_cast<ValueId>(id)))
          states_[id].host = std::shared_ptr<const Tensor>(std::shared_ptr<void>(), t);
    for (Learned& l : learned_) {
      if (l.whole) {
        set_known(l.id, l.value, l.fixed);
      } else {
        states_[static_cast<size_t>(l.id)].host = l.value;
        states_[static_cast<size_t>(l.id)].fixed = true;
      }
    }
  }

  void set_known(ValueId id, std::shared_ptr<const Tensor> value, bool fixed) {
    ValueState& s = states_[static_cast<size_t>(id)];
    s = {};
    s.known = true;
    s.dtype = value->type();
    s.shape = value->shape();
    s.on.assign(ctx_.settings.backends.size(), false);
    s.fixed = fixed;
    s.host = std::move(value);
  }

  bool keyed(ValueId id, const Tensor& t) {
    return c_.host_needed[static_cast<size_t>(id)] && t.elements() <= kKeyElements;
  }

  // The segment that follows `chain` for the present key: kept from an earlier run, or planned now.
  Chain* find(Chain* chain, int position, size_t backends, Arena& arena) {
    for (size_t i = 0; i < chain->next.size(); i++)
      if (chain->next[i]->key == key_) {
        if (i > 0)
          std::rotate(chain->next.begin(), chain->next.begin() + static_cast<long>(i),
                      chain->next.begin() + static_cast<long>(i) + 1);
        return chain->next[0].get();
      }
    Locations before;
    if (!current_) {
      states_.assign(g_.values.size(), {});
      before.assign(g_.values.size(), std::vector<Location>(backends));
      for (size_t id = 0; id < g_.values.size(); id++)
        if (const auto& constant = g_.values[id].constant)
          set_known(static_cast<ValueId>(id), constant, true);
      for (size_t i = 0; i < inputs_.size(); i++) {
        const bool fixed = keyed(g_.inputs[i], *inputs_[i]);
        // Content that a plan depends on is copied; the rest is only looked at in this run.
        auto tensor = fixed ? std::make_shared<const Tensor>(*inputs_[i])
                            : std::shared_ptr<const Tensor>(std::shared_ptr<void>(), inputs_[i]);
        set_known(g_.inputs[i], std::move(tensor), fixed);
      }
      for (const auto& [id, value] : outers_) set_known(id, value, keyed(id, *value));
    } else {
      before = current_->locations;
      gather_states();
    }
    SegmentPlan plan = compile::plan_segment(c_, ctx_.settings, states_, position);
    auto added = std::make_unique<Chain>();
    added->key = key_;
    added->segment = std::make_unique<Segment>(std::move(plan), c_, ctx_, before, arena);
    // What was only looked at must not outlive the run.
    for (ValueState& s : added->segment->plan.values)
      if (!s.fixed) s.host.reset();
    added->segment->serial = ++r_.serials_;
    arena.holds = added->segment->serial;
    // Plans in memory that has been outgrown would keep it.
    std::erase_if(chain->next, [&](const auto& other) { return outgrown(*other->segment, arena); });
    if (chain->next.size() >= kPlansKept) chain->next.pop_back();
    chain->next.insert(chain->next.begin(), std::move(added));
    return chain->next[0].get();
  }

  static bool outgrown(const Segment& segment, const Arena& arena) {
    for (size_t b = 0; b < segment.arenas.size(); b++)
      if (segment.arenas[b] && segment.arenas[b] != arena.buffers[b]) return true;
    return false;
  }

  void execute(const Segment& segment) {
    for (const Slot& slot : segment.plan.slots)
      if (slot.fill == Slot::Fill::each_run) {
        const Tensor* t = given(slot.value);
        const auto b = static_cast<size_t>(slot.backend);
        ctx_.settings.backends[b]->write(*segment.arenas[b], slot.offset, t->data(), t->bytes());
      }
    segment.enqueue(ctx_, staging_);
  }

  // A value that came from outside the segments in this run.
  const Tensor* given(ValueId id) {
    for (size_t i = 0; i < g_.inputs.size(); i++)
      if (g_.inputs[i] == id) return inputs_[i];
    if (auto it = outers_.find(id); it != outers_.end()) return it->second.get();
    if (auto it = made_.find(id); it != made_.end()) return it->second.get();
    return nullptr;
  }

  void finish() {
    for (Backend* b : ctx_.settings.backends) b->finish();
  }

  void fetch(ValueId id, Tensor& out) {
    if (const Tensor* t = given(id)) {
      out = *t;
      return;
    }
    const ValueState& s =
        current_ ? current_->plan.values[static_cast<size_t>(id)] : states_[static_cast<size_t>(id)];
    if (s.host && s.fixed) {
      out = *s.host;
      return;
    }
    // A default tensor looks like a scalar, but has no memory.
    if (out.type() != s.dtype || !(out.shape() == s.shape) || out.bytes() == 0)
      out = Tensor(s.dtype, s.shape);
    for (size_t b = 0; b < s.on.size(); b++)
      if (s.on[b]) {
        const Location& at = current_->locations[static_cast<size_t>(id)][b];
        ctx_.settings.backends[b]->read(*at.buffer, at.offset, out.data(), out.bytes());
        return;
      }
    if (g_.value(id).kind == Value::Kind::weight) {
      out = ctx_.weights->value(g_.value(id).name);
      return;
    }
    throw error(ErrorKind::InvalidFile, "graph '{}': output '{}' was never made", g_.name, g_.value(id).name);
  }

  // The value on the host.
  std::shared_ptr<const Tensor> host(ValueId id) {
    finish();
    auto t = std::make_shared<Tensor>();
    fetch(id, *t);
    return t;
  }

  void made(ValueId id, Tensor value) {
    auto t = std::make_shared<const Tensor>(std::move(value));
    made_[id] = t;
    append(id, *t);
    learned_.push_back({id, t, keyed(id, *t), true});
  }

  void control(int index) {
    const Node& n = g_.nodes[static_cast<size_t>(index)];
    auto& runners = r_.regions_[static_cast<size_t>(index)];
    const Outer outer = [this](ValueId id) { return host(id); };
    std::vector<Tensor> results;
    switch (n.op) {
      case Op::If: {
        const size_t branch = host(n.operands[0])->integer(0) ? 0 : 1;
        key_.push_back(static_cast<int64_t>(branch));
        runners[branch]->run({}, results, outer);
        for (size_t i = 0; i < n.results.size(); i++) made(n.results[i], std::move(results[i]));
        break;
      }
      case Op::Loop:
        loop(n, *runners[0], outer);
        break;
      case Op::Scan:
        scan(n, *runners[0], outer);
        break;
      default:
        evaluate(n);  // results of content-dependent shape, or strings
    }
  }

  // One node by its definition, on the host.
  void evaluate(const Node& n) {
    std::vector<std::shared_ptr<const Tensor>> held;
    std::vector<const Tensor*> operands;
    std::vector<Type> types(n.operands.size());
    std::vector<const Type*> pointers;
    for (size_t k = 0; k < n.operands.size(); k++) {
      if (n.operands[k] == kNone) {
        operands.push_back(nullptr);
        pointers.push_back(nullptr);
        continue;
      }
      held.push_back(host(n.operands[k]));
      operands.push_back(held.back().get());
      types[k] = concrete(held.back()->type(), held.back()->shape());
      pointers.push_back(&types[k]);
    }
    InferContext context(
        *c_.program, n, pointers, [&](int k) { return operands[static_cast<size_t>(k)]; }, true);
    info(n.op).shape(context);
    std::vector<Tensor> results;
    for (const Type& t : context.results()) results.emplace_back(t.dtype, shape_of(t));
    ctx_.settings.evaluate(*c_.program, n, operands, results);
    for (size_t i = 0; i < n.results.size(); i++) made(n.results[i], std::move(results[i]));
  }

  static Tensor stack(const std::vector<Tensor>& parts, const Type& type, const char* what) {
    Shape shape{static_cast<int64_t>(parts.size())};
    if (parts.empty()) {
      for (int a = 1; a < type.rank(); a++)
        shape.push_back(
            type.dims[static_cast<size_t>(a)].is_number() ? type.dims[static_cast<size_t>(a)].number() : 0);
      return Tensor(type.dtype, shape);
    }
    for (int64_t d : parts[0].shape()) shape.push_back(d);
    Tensor out(parts[0].type(), shape);
    size_t at = 0;
    for (const Tensor& p : parts) {
      if (!(p.shape() == parts[0].shape()))
        throw error(ErrorKind::ShapeMismatch, "{}: stacked values differ in shape: {} and {}", what,
                    to_string(parts[0].shape()), to_string(p.shape()));
      if (p.type() == DType::string) {
        std::copy(p.strings().begin(), p.strings().end(), out.strings().begin() + static_cast<long>(at));
        at += p.strings().size();
        continue;
      }
      if (p.bytes()) std::memcpy(static_cast<uint8_t*>(out.data()) + at, p.data(), p.bytes());
      at += p.bytes();
    }
    return out;
  }

  Error endless(int64_t rounds) const {
    return error(ErrorKind::UnsupportedModel, "graph '{}': a loop of {} rounds or more; at most {} are run",
                 g_.name, rounds, ctx_.max_loop)
        .advise("the loop has no end; look at its condition and at how many rounds the inputs ask for");
  }

  void loop(const Node& n, GraphRunner& body, const Outer& outer) {
    const auto carried = static_cast<size_t>(n.as<LoopAttrs>().carried);
    const int64_t trips = n.operands[0] == kNone ? INT64_MAX : host(n.operands[0])->integer(0);
    Tensor condition(DType::boolean, {});
    condition.at<uint8_t>(0) = n.operands[1] == kNone || host(n.operands[1])->integer(0);
    std::vector<Tensor> values;
    for (size_t i = 0; i < carried; i++) values.push_back(*host(n.operands[i + 2]));
    std::vector<std::vector<Tensor>> stacked(n.results.size() - carried);
    const bool conditional = n.operands[1] != kNone || n.operands[0] == kNone;
    // A body that never changes the condition runs all its rounds.
    const Graph& rounds = body.graph_.graph;
    const bool settled = !conditional || rounds.outputs[0] == rounds.inputs[1];
    if (settled && condition.at<uint8_t>(0) && trips > ctx_.max_loop) throw endless(trips);
    Tensor i64(DType::i64, {});
    std::vector<Tensor> results;
    for (int64_t i = 0; i < trips && condition.at<uint8_t>(0); i++) {
      if (i >= ctx_.max_loop) throw endless(i);
      i64.at<int64_t>(0) = i;
      std::vector<const Tensor*> inputs = {&i64, &condition};
      for (const Tensor& t : values) inputs.push_back(&t);
      body.run(inputs, results, outer);
      for (size_t k = 0; k < carried; k++) values[k] = results[k + 1];
      for (size_t k = 0; k < stacked.size(); k++) stacked[k].push_back(results[carried + 1 + k]);
      if (conditional) condition.at<uint8_t>(0) = results[0].integer(0) != 0;
    }
    for (size_t k = 0; k < carried; k++) made(n.results[k], std::move(values[k]));
    for (size_t k = 0; k < stacked.size(); k++)
      made(n.results[carried + k], stack(stacked[k], g_.value(n.results[carried + k]).type, "loop"));
  }

  void scan(const Node& n, GraphRunner& body, const Outer& outer) {
    const auto carried = static_cast<size_t>(n.as<ScanAttrs>().carried);
    std::vector<Tensor> values;
    for (size_t i = 0; i < carried; i++) values.push_back(*host(n.operands[i]));
    std::vector<std::shared_ptr<const Tensor>> sequences;
    for (size_t i = carried; i < n.operands.size(); i++) sequences.push_back(host(n.operands[i]));
    const int64_t length = sequences.empty() ? 0 : sequences[0]->shape()[0];
    for (const auto& s : sequences)
      if (s->shape()[0] != length)
        throw error(ErrorKind::ShapeMismatch, "scan: sequences of {} and {}", length, s->shape()[0]);
    std::vector<std::vector<Tensor>> stacked(n.results.size() - carried);
    std::vector<Tensor> results;
    for (int64_t i = 0; i < length; i++) {
      std::vector<Tensor> elements;
      for (const auto& s : sequences) {
        Shape shape;
        for (int a = 1; a < s->shape().rank(); a++) shape.push_back(s->shape()[a]);
        Tensor element(s->type(), shape);
        if (s->type() == DType::string)
          element.strings().assign(s->strings().begin() + i * element.elements(),
                                   s->strings().begin() + (i + 1) * element.elements());
        else if (element.bytes())
          std::memcpy(element.data(),
                      static_cast<const uint8_t*>(s->data()) + static_cast<size_t>(i) * element.bytes(),
                      element.bytes());
        elements.push_back(std::move(element));
      }
      std::vector<const Tensor*> inputs;
      for (const Tensor& t : values) inputs.push_back(&t);
      for (const Tensor& t : elements) inputs.push_back(&t);
      body.run(inputs, results, outer);
      for (size_t k = 0; k < carried; k++) values[k] = results[k];
      for (size_t k = 0; k < stacked.size(); k++) stacked[k].push_back(results[carried + k]);
    }
    for (size_t k = 0; k < carried; k++) made(n.results[k], std::move(values[k]));
    for (size_t k = 0; k < stacked.size(); k++)
      made(n.results[carried + k], stack(stacked[k], g_.value(n.results[carried + k]).type, "scan"));
  }

  GraphRunner& r_;
  const compile::CompiledGraph& c_;
  const Graph& g_;
  RunContext& ctx_;
  const Outer& outer_;
  std::span<const Tensor* const> inputs_;
  Key& key_;
  std::vector<ValueState> states_;
  const Segment* current_ = nullptr;
  std::vector<Learned> learned_;
  std::map<ValueId, std::shared_ptr<const Tensor>> outers_, made_;
  std::vector<uint8_t> staging_;
};

GraphRunner::GraphRunner(const compile::CompiledGraph& graph, RunContext& context)
    : graph_(graph), context_(context), root_(std::make_unique<Chain>()) {
  for (const auto& regions : graph.regions) {
    regions_.emplace_back();
    for (const auto& region : regions)
      regions_.back().push_back(std::make_unique<GraphRunner>(*region, context));
  }
}

GraphRunner::~GraphRunner() = default;

void GraphRunner::run(std::span<const Tensor* const> inputs, std::vector<Tensor>& outputs,
                      const Outer& outer) {
  Run(*this, inputs, outer).go(outputs);
}

GraphRunner::Memory GraphRunner::memory() const {
  Memory m;
  for (const Segment* s : last_)
    for (const auto& arena : s->plan.arenas) {
      m.arena_bytes += arena.bytes;
      m.live_bytes += arena.live;
    }
  return m;
}

}  // namespace cyb
