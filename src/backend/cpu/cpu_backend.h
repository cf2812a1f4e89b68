// SPDX-License-Identifier: Apache-2.0
// The CPU as a backend: host memory, a thread pool, and the kernel rows that the operator groups registered.
#pragma once

#include <functional>
#include <memory>

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

// How the groups make what the machinery does not know: states, and weights that products read.
struct Hooks {
  std::function<std::unique_ptr<StateStore>(const ir::State&, const StateOptions&, const Precision&)>
      make_state;
  std::function<uint64_t(const ir::State&, const Precision&)> position_bytes;
  std::function<std::unique_ptr<Weight>(const TensorSpec&, std::span<const uint8_t>, const Weight* scale,
                                        WeightRole)>
      load_weight;
};

struct Options {
  int threads = 0;  // 0: all processors
  Isa isa = Isa::scalar;
};

std::unique_ptr<Backend> make_backend(const Options& options, KernelTable table, Hooks hooks);

// A weight decoded to plain values of its type.
class DenseWeight final : public Weight {
 public:
  DenseWeight(const TensorSpec& spec, Tensor values) : spec_(spec), values_(std::move(values)) {}
  const TensorSpec& spec() const override { return spec_; }
  uint64_t extra_bytes() const override { return values_.bytes(); }
  const void* data() const { return values_.data(); }

 private:
  TensorSpec spec_;
  Tensor values_;
};

// Memory for values and scratch.
class HostBuffer final : public Buffer {
 public:
  explicit HostBuffer(uint64_t bytes);
  ~HostBuffer() override;
  uint64_t size() const override { return size_; }
  uint8_t* data() { return data_; }

 private:
  uint64_t size_;
  uint8_t* data_ = nullptr;
};

// Runs one node on host tensors by its reference row: shape arithmetic, data-dependent shapes.
// `results` have their types and shapes set.
void run_reference(const KernelTable& table, const ir::Program& program, const ir::Node& node,
                   std::span<const Tensor* const> operands, std::span<Tensor> results);

}  // namespace cyb::cpu
