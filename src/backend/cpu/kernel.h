// SPDX-License-Identifier: Apache-2.0
// Kernel rows: what a group of operators has to say about running on the CPU. For each node the rows of its
// operator are filtered (reject; where a value has its channels in blocks, those without `layouts` go too),
// the cheapest that is left is taken; the reference row is last and takes everything.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/cpu_features.h"
#include "base/thread_pool.h"

namespace cyb::cpu {

// How a value N C spatial lies in memory. nchw16c: [n][c / 16][spatial][c % 16], C a multiple of 16, in as
// many bytes; sums of convolutions, whose lanes are channels, are stored as they come and read one after the
// other.
enum class Layout : uint8_t { plain, nchw16c };

// An operand or result as kernels see it: contiguous, row-major but for its layout.
struct Arg {
  DType dtype = DType::f32;
  Shape shape;
  void* data = nullptr;            // values and dense weights; null: absent
  const Weight* weight = nullptr;  // set for encoded weights; see cpu::weight_matrix_of
  Layout layout = Layout::plain;   // of 4 axes

  bool present() const { return data || weight; }
  int64_t elements() const { return shape.elements(); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data);
  }
  float* f32() const { return static_cast<float*>(data); }
};

struct Call {
  const ir::Program* program = nullptr;
  const ir::Node* node = nullptr;
  std::vector<Arg> in, out;
  std::vector<StateStore*> states;
  RandomSource* random = nullptr;
  ThreadPool* pool = nullptr;
  Isa isa = Isa::scalar;
  Precision precision;
  uint8_t* scratch = nullptr;      // `scratch_bytes` of the row, 64-byte aligned, shared by all calls
  std::shared_ptr<void> prepared;  // what `prepare` or `plan` left

  template <class T>
  const T& attrs() const {
    return node->as<T>();
  }
  bool has(size_t i) const { return i < in.size() && in[i].present(); }
};

// What a row is asked: symbolic at placement, concrete (call set) when a run is compiled.
struct Query {
  const ir::Node& node;
  std::span<const ir::Type* const> operands;
  std::span<const TensorSpec* const> weights;
  Precision precision;
  bool nchw16c = false;  // a row is sought that takes values of this layout

  DType dtype(size_t i) const { return operands[i]->dtype; }
  bool has(size_t i) const { return i < operands.size() && operands[i]; }
  const TensorSpec* weight(size_t i) const { return i < weights.size() ? weights[i] : nullptr; }
};

struct KernelRow {
  ir::Op op;
  const char* name;
  Isa isa = Isa::scalar;
  int cost = 100;        // lower is taken first
  uint32_t encoded = 0;  // bit i: weights at operand i come encoded (from 30 on as 28 and 29)
  const char* (*reject)(const Query& query) = nullptr;  // null: takes it; else why not
  uint64_t (*scratch_bytes)(const Call& call) = nullptr;
  void (*prepare)(Call& call) = nullptr;  // may throw
  void (*plan)(Call& call) = nullptr;     // the same, once the scratch has its place too
  void (*run)(Call& call) = nullptr;      // must not throw
  // Makes plain what the row cannot take in the layouts of the call's values as they stand; never the other
  // way. Null: everything.
  void (*layouts)(Call& call) = nullptr;
};

// For rows that go through memory in order: all values of the result's shape have its layout, or all are
// plain.
void layouts_alike(Call& call);

// All rows, grouped by operator, cheapest first.
class KernelTable {
 public:
  void add(const KernelRow& row);
  const std::vector<KernelRow>& rows(ir::Op op) const;

 private:
  std::vector<std::vector<KernelRow>> rows_;
};

}  // namespace cyb::cpu
