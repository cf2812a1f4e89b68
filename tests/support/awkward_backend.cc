// SPDX-License-Identifier: Apache-2.0
#include "support/awkward_backend.h"

#include <deque>
#include <functional>

#include "base/philox.h"
#include "ops/cpu.h"

namespace cyb::test {
namespace {

// Memory of the inner backend that nobody else can name.
class HiddenBuffer final : public Buffer {
 public:
  explicit HiddenBuffer(std::unique_ptr<Buffer> inner) : inner_(std::move(inner)) {}
  uint64_t size() const override { return inner_->size(); }
  Buffer& inner() { return *inner_; }

 private:
  std::unique_ptr<Buffer> inner_;
};

class HiddenWeight final : public Weight {
 public:
  explicit HiddenWeight(std::unique_ptr<Weight> inner) : inner_(std::move(inner)) {}
  const TensorSpec& spec() const override { return inner_->spec(); }
  uint64_t extra_bytes() const override { return inner_->extra_bytes(); }
  Weight& inner() const { return *inner_; }

 private:
  std::unique_ptr<Weight> inner_;
};

class AwkwardBackend final : public Backend {
 public:
  explicit AwkwardBackend(const AwkwardOptions& o) : options_(o), inner_(make_cpu_backend(1)) {}

  const std::string& name() const override { return name_; }
  std::string describe() const override { return "awkward, for tests"; }

  bool supports(const NodeQuery& q, std::string* why) const override {
    const auto op = static_cast<uint64_t>(q.node.op);
    if (philox(options_.seed, op)[0] & 1) {
      if (why) *why = "it does not like this operator";
      return false;
    }
    return inner_->supports(q, why);
  }

  std::unique_ptr<Buffer> allocate(uint64_t bytes) override {
    return std::make_unique<HiddenBuffer>(inner_->allocate(bytes));
  }

  void write(Buffer& buffer, uint64_t offset, const void* data, uint64_t bytes) override {
    const auto* from = static_cast<const uint8_t*>(data);
    queue_.push_back([this, &buffer, offset, copy = std::vector<uint8_t>(from, from + bytes)] {
      inner_->write(inside(&buffer), offset, copy.data(), copy.size());
    });
  }
  void read(Buffer& buffer, uint64_t offset, void* data, uint64_t bytes) override {
    work();
    inner_->read(inside(&buffer), offset, data, bytes);
  }
  void* host_pointer(Buffer&) override { return nullptr; }

  std::unique_ptr<Weight> load_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                      const Weight* scale, WeightRole role) override {
    const Weight* inner_scale = scale ? &static_cast<const HiddenWeight*>(scale)->inner() : nullptr;
    return std::make_unique<HiddenWeight>(inner_->load_weight(spec, bytes, inner_scale, role));
  }
  WeightRole weight_role(const ir::Node& node, int operand) const override {
    return inner_->weight_role(node, operand);
  }

  std::unique_ptr<StateStore> make_state(const ir::State& state, const StateOptions& options,
                                         const Precision& precision) override {
    return inner_->make_state(state, options, precision);
  }
  uint64_t position_bytes(const ir::State& state, const Precision& precision) const override {
    return inner_->position_bytes(state, precision);
  }

  std::unique_ptr<Executable> compile(std::span<const NodeCall> nodes, const Precision& precision) override {
    std::vector<NodeCall> unwrapped(nodes.begin(), nodes.end());
    for (NodeCall& n : unwrapped)
      for (auto* list : {&n.operands, &n.results})
        for (Operand& o : *list) {
          if (o.buffer) o.buffer = &inside(o.buffer);
          if (o.weight) o.weight = &static_cast<HiddenWeight*>(o.weight)->inner();
        }
    struct Later final : Executable {
      AwkwardBackend* owner;
      std::unique_ptr<Executable> inner;
      void enqueue() override {
        owner->queue_.push_back([this] {
          if (owner->runs_++ == owner->options_.fail_after)
            throw error(ErrorKind::BackendInit, "the device was lost");
          inner->enqueue();
        });
      }
      std::vector<Choice> choices() const override { return inner->choices(); }
    };
    auto later = std::make_unique<Later>();
    later->owner = this;
    later->inner = inner_->compile(unwrapped, precision);
    return later;
  }

  void finish() override { work(); }
  int64_t runs() const { return runs_; }

 private:
  static Buffer& inside(Buffer* b) { return static_cast<HiddenBuffer*>(b)->inner(); }
  void work() {
    while (!queue_.empty()) {
      const auto job = std::move(queue_.front());
      queue_.pop_front();
      try {
        job();
      } catch (...) {
        queue_.clear();  // what follows a lost run is lost too
        throw;
      }
    }
  }

  std::string name_ = "awkward";
  AwkwardOptions options_;
  std::unique_ptr<Backend> inner_;
  std::deque<std::function<void()>> queue_;
  int64_t runs_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_awkward_backend(const AwkwardOptions& options) {
  return std::make_unique<AwkwardBackend>(options);
}

int64_t awkward_runs(const Backend& backend) { return static_cast<const AwkwardBackend&>(backend).runs(); }

}  // namespace cyb::test
