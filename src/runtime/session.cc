// SPDX-License-Identifier: Apache-2.0
#include "runtime/session.h"

#include <algorithm>
#include <cstring>

#include "ir/text.h"
#include "ops/cpu.h"

namespace cyb {

struct Session::Entry {
  std::unique_ptr<compile::CompiledGraph> graph;
  std::unique_ptr<GraphRunner> runner;
};

namespace {

constexpr char kMagic[8] = {'c', 'y', 'b', 's', 't', 'a', 't', '1'};

// States that the graph appends to.
std::vector<int> find_written(const ir::Graph& graph) {
  std::vector<int> out;
  for (const ir::Node& n : graph.nodes) {
    const bool appends = n.op == ir::Op::KvCache || n.op == ir::Op::LinearRecurrence || (n.op == ir::Op::Sdpa && n.operands.size() > 1 && n.operands[1] != ir::kNone);
    if (appends) out.insert(out.end(), n.states.begin(), n.states.end());
  }
  return out;
}

}  // namespace

Session::Session(const ir::Program& program, WeightStore& weights, SessionOptions options)
    : program_(program), options_(std::move(options)) {
  auto& s = context_.settings;
  s.backends = options_.backends;
  s.find_weight = [&weights](const std::string& name) { return weights.source().find(name); };
  s.precision = options_.precision;
  s.fusion = options_.fusion;
  s.evaluate = evaluate_node;
  context_.weights = &weights;
  context_.random.seed = options_.seed;
  state_place_ = compile::place_states(program_, s);
  for (size_t i = 0; i < program_.states.size(); i++) {
    Backend* backend = s.backends[static_cast<size_t>(state_place_[i])];
    states_.push_back(backend->make_state(program_.states[i], options_.states, options_.precision));
    context_.states.push_back(states_.back().get());
  }
  for (const ir::Graph& g : program_.graphs) written_[g.name] = find_written(g);
}

Session::~Session() = default;

Session::Entry& Session::entry(const std::string& name) {
  auto& e = entries_[name];
  if (!e) {
    const ir::Graph* graph = program_.find(name);
    if (!graph) {
      entries_.erase(name);
      std::string known;
      for (const ir::Graph& g : program_.graphs) known += (known.empty() ? "" : ", ") + g.name;
      throw error(ErrorKind::Usage, "the program has no graph '{}'", name).advise("it has: {}", known);
    }
    auto added = std::make_unique<Entry>();
    added->graph = compile::compile_graph(program_, *graph, context_.settings, state_place_);
    added->runner = std::make_unique<GraphRunner>(*added->graph, context_);
    e = std::move(added);
  }
  return *e;
}

void Session::run(const std::string& graph, std::span<const Tensor* const> inputs, std::vector<Tensor>& outputs) {
  entry(graph).runner->run(inputs, outputs);
}

const std::vector<int>& Session::written(const std::string& graph) const {
  static const std::vector<int> none;
  const auto it = written_.find(graph);
  return it == written_.end() ? none : it->second;
}

int64_t Session::length(int slot, const std::string& graph) const {
  int64_t n = 0;
  for (int s : written(graph)) n = std::max(n, states_[static_cast<size_t>(s)]->length(slot));
  return n;
}

int64_t Session::truncate(int slot, int64_t n, const std::string& graph) {
  int64_t from = n;
  for (int s : written(graph)) from = std::min(from, states_[static_cast<size_t>(s)]->recompute_from(slot, n));
  for (int s : written(graph)) states_[static_cast<size_t>(s)]->truncate(slot, from);
  return from;
}

void Session::reset(int slot) {
  for (auto& s : states_) s->truncate(slot, 0);
}

void Session::fork(int from, int to) {
  for (auto& s : states_) s->fork(from, to);
}

void Session::select(std::span<const int32_t> index) {
  for (auto& s : states_) s->select(index);
}

void Session::save(int slot, ByteSink& sink) const {
  sink.write(kMagic, sizeof kMagic);
  const auto count = static_cast<uint64_t>(states_.size());
  sink.write(&count, sizeof count);
  for (size_t i = 0; i < states_.size(); i++) {
    const std::string& name = program_.states[i].name;
    const auto length = static_cast<uint64_t>(name.size());
    sink.write(&length, sizeof length);
    sink.write(name.data(), name.size());
    states_[i]->save(slot, sink);
  }
}

void Session::load(int slot, ByteSource& source) {
  char magic[8];
  source.read(magic, sizeof magic);
  uint64_t count = 0;
  source.read(&count, sizeof count);
  if (std::memcmp(magic, kMagic, sizeof magic) != 0 || count != states_.size())
    throw error(ErrorKind::InvalidFile, "these are no saved states of this program");
  try {
    for (size_t i = 0; i < states_.size(); i++) {
      uint64_t length = 0;
      source.read(&length, sizeof length);
      std::string name(std::min<uint64_t>(length, 4096), '\0');
      source.read(name.data(), name.size());
      if (name != program_.states[i].name)
        throw error(ErrorKind::InvalidFile, "saved states hold '{}' where the program has '{}'", name, program_.states[i].name);
      states_[i]->load(slot, source);
    }
  } catch (...) {
    reset(slot);  // half of a sequence is worse than none
    throw;
  }
}

uint64_t Session::state_bytes() const {
  uint64_t bytes = 0;
  for (const auto& s : states_) bytes += s->bytes();
  return bytes;
}

GraphRunner::Memory Session::memory(const std::string& graph) const {
  const auto it = entries_.find(graph);
  return it == entries_.end() ? GraphRunner::Memory{} : it->second->runner->memory();
}

std::string Session::explain(const std::string& graph) const {
  const auto it = entries_.find(graph);
  if (it == entries_.end()) return "";
  const ir::Graph& before = *program_.find(graph);
  const ir::Graph& after = it->second->graph->graph;
  std::string out = "before fusion\n";
  for (const ir::Node& n : before.nodes) out += "  " + ir::print_node(program_, before, n) + "\n";
  out += "after fusion\n";
  for (const ir::Node& n : after.nodes) out += "  " + ir::print_node(program_, after, n) + "\n";
  return out + it->second->runner->explain();
}

}  // namespace cyb
