// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_backend.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>

#include "backend/cpu/layouts.h"
#include "base/aligned_memory.h"
#include "base/checked.h"
#include "base/system_memory.h"

namespace cyb::cpu {
namespace {

constexpr size_t kAlign = 64;

// The rows that could take the node, with the reason of each that does not; null when none does.
const KernelRow* choose(const KernelTable& table, Isa machine, const Query& query,
                        std::vector<std::string>* skipped) {
  for (const KernelRow& row : table.rows(query.node.op)) {
    const char* why = nullptr;
    if (!isa_runs_on(row.isa, machine))
      why = "the processor lacks its instructions";
    else if (row.reject)
      why = row.reject(query);
    if (!why && query.nchw16c && !row.layouts) why = "it takes plain values only";
    if (!why) return &row;
    if (skipped) skipped->push_back(std::string(row.name) + ": " + why);
  }
  return nullptr;
}

// Times of one kernel row of one operator.
using Profile = std::map<std::pair<ir::Op, const KernelRow*>, Backend::KernelTime>;

// Runs calls one after the other on the thread that enqueues.
class CpuExecutable final : public Executable {
 public:
  explicit CpuExecutable(const std::unique_ptr<Profile>& profile) : profile_(profile) {}
  void enqueue() override {
    if (profile_) return enqueue_timed();
    for (Step& step : steps) step.row->run(step.call);
  }
  std::vector<Choice> choices() const override { return choices_; }

  struct Step {
    const KernelRow* row;
    Call call;
  };
  std::vector<Step> steps;
  std::vector<Choice> choices_;
  std::shared_ptr<HostBuffer> scratch;

 private:
  void enqueue_timed() {
    using Clock = std::chrono::steady_clock;
    for (Step& step : steps) {
      const auto start = Clock::now();
      step.row->run(step.call);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      auto& entry = (*profile_)[{step.call.node->op, step.row}];
      entry.calls++;
      entry.seconds += seconds;
    }
  }
  const std::unique_ptr<Profile>& profile_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const Options& options, KernelTable table, Hooks hooks)
      : table_(std::move(table)), hooks_(std::move(hooks)), pool_(options.threads), isa_(options.isa) {}

  const std::string& name() const override { return name_; }
  std::string describe() const override {
    return fmt::format("{}, {} threads", describe_cpu(), pool_.threads());
  }

  bool supports(const NodeQuery& q, std::string* why) const override {
    std::vector<std::string> skipped;
    if (choose(table_, isa_, {q.node, q.operands, q.weights, q.precision}, &skipped)) return true;
    if (why) {
      *why = skipped.empty() ? "it has no kernel" : "";
      for (const std::string& s : skipped) *why += (why->empty() ? "" : "; ") + s;
    }
    return false;
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes) override { return std::make_unique<HostBuffer>(bytes); }

  void write(Buffer& buffer, uint64_t offset, const void* data, uint64_t bytes) override {
    if (bytes) std::memcpy(static_cast<HostBuffer&>(buffer).data() + offset, data, bytes);
  }
  void read(Buffer& buffer, uint64_t offset, void* data, uint64_t bytes) override {
    if (bytes) std::memcpy(data, static_cast<HostBuffer&>(buffer).data() + offset, bytes);
  }
  void* host_pointer(Buffer& buffer) override { return static_cast<HostBuffer&>(buffer).data(); }

  std::unique_ptr<Weight> load_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                      const Weight* scale, WeightRole role) override {
    return hooks_.load_weight(spec, bytes, scale, role);
  }

  WeightRole weight_role(const ir::Node& node, int operand) const override {
    for (const KernelRow& row : table_.rows(node.op))
      if (row.encoded >> (operand < 30 ? operand : 28 + operand % 2) & 1) return WeightRole::encoded;
    return WeightRole::dense;
  }

  std::unique_ptr<StateStore> make_state(const ir::State& state, const StateOptions& options,
                                         const Precision& precision) override {
    return hooks_.make_state(state, options, precision);
  }
  uint64_t position_bytes(const ir::State& state, const Precision& precision) const override {
    return hooks_.position_bytes(state, precision);
  }

  std::unique_ptr<Executable> compile(std::span<const NodeCall> nodes, const Precision& precision) override {
    auto exe = std::make_unique<CpuExecutable>(profile_);
    std::vector<Question> questions;
    std::vector<Call> calls;
    for (const NodeCall& n : nodes) {
      questions.emplace_back(n);
      calls.push_back(call_of(n, precision));
    }
    const std::vector<bool> blocks = choose_layouts(nodes, calls, [&](size_t i) {
      return choose(table_, isa_, questions[i].query(precision, true), nullptr);
    });
    uint64_t scratch = 0;
    for (size_t i = 0; i < nodes.size(); i++) {
      const NodeCall& n = nodes[i];
      Executable::Choice choice{n.name, "", {}};
      const KernelRow* row =
          choose(table_, isa_, questions[i].query(precision, blocks[i]), &choice.skipped);
      if (!row)
        throw error(ErrorKind::UnsupportedOp, "no cpu kernel takes node '{}' ({}): {}", n.name,
                    ir::info(n.node->op).text_name, fmt::join(choice.skipped, "; "));
      choice.kernel = row->name;
      Call& call = calls[i];
      if (row->prepare) row->prepare(call);
      if (row->scratch_bytes) scratch = std::max(scratch, row->scratch_bytes(call));
      exe->steps.push_back({row, std::move(call)});
      exe->choices_.push_back(std::move(choice));
    }
    // Calls run one after the other, so one piece of scratch serves all; it only grows.
    if (!scratch_ || scratch_->size() < scratch) scratch_ = std::make_shared<HostBuffer>(scratch);
    exe->scratch = scratch_;
    for (auto& step : exe->steps) {
      step.call.scratch = exe->scratch->data();
      if (step.row->plan) step.row->plan(step.call);
    }
    return exe;
  }

  void finish() override {}

  void set_profiling(bool on) override { profile_ = on ? std::make_unique<Profile>() : nullptr; }
  std::vector<KernelTime> profile() const override {
    std::vector<KernelTime> out;
    if (!profile_) return out;
    for (const auto& [key, time] : *profile_) {
      out.push_back(time);
      out.back().op = ir::info(key.first).text_name;
      out.back().kernel = key.second->name;
    }
    std::sort(out.begin(), out.end(),
              [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
    return out;
  }

 private:
  // What the rows are asked about a node.
  struct Question {
    explicit Question(const NodeCall& n) : node(n.node) {
      types.reserve(n.operands.size());
      for (const Operand& o : n.operands) {
        types.push_back(ir::concrete(o.dtype, o.shape));
        pointers.push_back(o.present() ? &types.back() : nullptr);
        weights.push_back(o.weight ? &o.weight->spec() : nullptr);
      }
    }
    Query query(const Precision& precision, bool nchw16c) const {
      return {*node, pointers, weights, precision, nchw16c};
    }
    const ir::Node* node;
    std::vector<ir::Type> types;
    std::vector<const ir::Type*> pointers;
    std::vector<const TensorSpec*> weights;
  };

  Call call_of(const NodeCall& n, const Precision& precision) {
    Call call;
    call.program = n.program;
    call.node = n.node;
    for (const Operand& o : n.operands) call.in.push_back(arg(o));
    for (const Operand& o : n.results) call.out.push_back(arg(o));
    call.states = n.states;
    call.random = n.random;
    call.pool = &pool_;
    call.isa = isa_;
    call.precision = precision;
    return call;
  }

  static Arg arg(const Operand& o) {
    Arg a;
    a.dtype = o.dtype;
    a.shape = o.shape;
    if (o.buffer)
      a.data = static_cast<HostBuffer*>(o.buffer)->data() + o.offset;
    else if (const auto* dense = dynamic_cast<const DenseWeight*>(o.weight))
      a.data = const_cast<void*>(dense->data());
    else
      a.weight = o.weight;
    return a;
  }

  std::string name_ = "cpu";
  std::unique_ptr<Profile> profile_;  // null: not profiling
  KernelTable table_;
  Hooks hooks_;
  ThreadPool pool_;
  Isa isa_;
  std::shared_ptr<HostBuffer> scratch_;
};

}  // namespace

HostBuffer::HostBuffer(uint64_t bytes) : size_(bytes) {
  const uint64_t rounded = round_up<uint64_t>(std::max<uint64_t>(bytes, 1), kAlign);
  // The system may promise more than there is, and end the process when it is touched.
  static const uint64_t memory = usable_memory();
  if (!memory || rounded <= memory) data_ = static_cast<uint8_t*>(allocate_aligned(rounded));
  if (!data_)
    throw error(ErrorKind::OutOfMemory, "no memory for {} MB of activations", bytes >> 20)
        .advise("use a shorter context or prompt (--ctx), or smaller inputs");
}

HostBuffer::~HostBuffer() { std::free(data_); }

void KernelTable::add(const KernelRow& row) {
  const auto index = static_cast<size_t>(row.op);
  if (rows_.size() <= index) rows_.resize(index + 1);
  auto& list = rows_[index];
  const auto at = std::upper_bound(list.begin(), list.end(), row.cost,
                                   [](int cost, const KernelRow& r) { return cost < r.cost; });
  list.insert(at, row);
}

const std::vector<KernelRow>& KernelTable::rows(ir::Op op) const {
  static const std::vector<KernelRow> none;
  const auto index = static_cast<size_t>(op);
  return index < rows_.size() ? rows_[index] : none;
}

void run_reference(const KernelTable& table, const ir::Program& program, const ir::Node& node,
                   std::span<const Tensor* const> operands, std::span<Tensor> results) {
  const auto& rows = table.rows(node.op);
  if (rows.empty())
    throw error(ErrorKind::UnsupportedOp, "operator '{}' has no kernel", ir::info(node.op).text_name)
        .advise("cyb-llm status --ops lists the operators that run");
  static ThreadPool one(1);
  Call call;
  call.program = &program;
  call.node = &node;
  // An empty tensor has no memory, yet it is present.
  static uint64_t nothing = 0;
  auto memory = [](const Tensor& t) {
    const void* p = t.type() == DType::string ? static_cast<const void*>(t.strings().data()) : t.data();
    return p ? const_cast<void*>(p) : static_cast<void*>(&nothing);
  };
  for (const Tensor* t : operands)
    call.in.push_back(t ? Arg{t->type(), t->shape(), memory(*t), nullptr} : Arg{});
  for (Tensor& t : results) call.out.push_back({t.type(), t.shape(), memory(t), nullptr});
  call.pool = &one;
  const KernelRow& row = rows.back();
  if (row.prepare) row.prepare(call);
  std::vector<uint8_t> scratch(row.scratch_bytes ? row.scratch_bytes(call) + kAlign : 0);
  if (!scratch.empty())
    call.scratch = scratch.data() + (kAlign - reinterpret_cast<uintptr_t>(scratch.data()) % kAlign) % kAlign;
  if (row.plan) row.plan(call);
  row.run(call);
}

std::unique_ptr<Backend> make_backend(const Options& options, KernelTable table, Hooks hooks) {
  return std::make_unique<CpuBackend>(options, std::move(table), std::move(hooks));
}

}  // namespace cyb::cpu
