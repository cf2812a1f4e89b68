// SPDX-License-Identifier: Apache-2.0
// What every backend offers: which nodes it takes, how it holds buffers, weights and states, and how it
// compiles a run of nodes. Work is enqueued and may run later; errors may surface at finish().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "tensor/encoding.h"

namespace cyb {

// Decided by the task that compiles a graph; graphs do not carry it.
struct Precision {
  bool exact = false;     // f32 activations and states, no approximations: what goldens run under
  bool acts8 = true;      // activations rounded to 8 bits per block of 32 where weights are q8, q4, ternary
  bool acts8_if_faster = false;  // only where that is faster on this processor
  DType kv = DType::f16;  // keys and values of attention states; i8: 8 bits with a scale for each few
  bool eight_bit() const { return acts8 && !exact; }
  DType kv_type() const { return exact ? DType::f32 : kv; }
};

// What the random operators of a session draw from. Each run of such a node takes the next number, so that
// the same calls on a session of the same seed give the same sequence.
struct RandomSource {
  uint64_t seed = 0;
  uint64_t draws = 0;
};

// Memory of one backend.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual uint64_t size() const = 0;
};

// A weight in the form in which one backend's kernels read it.
class Weight {
 public:
  virtual ~Weight() = default;
  virtual const TensorSpec& spec() const = 0;
  // Memory taken beside the file's mapping.
  virtual uint64_t extra_bytes() const { return 0; }
};

// Where a state is written to and read back from.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(const void* data, size_t size) = 0;
};
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual void read(void* data, size_t size) = 0;  // throws InvalidFile at the end
};

// One backend's storage of one state, for all slots. Called between runs only, after finish().
class StateStore {
 public:
  virtual ~StateStore() = default;
  virtual int64_t length(int slot) const = 0;  // positions held (kv), or gone through (tensors)
  // Keeps the first n positions. Returns from where the sequence must be computed again: n, or less where a
  // window has already lost what n needs; the slot is then cut to that.
  virtual int64_t truncate(int slot, int64_t n) = 0;
  virtual int64_t recompute_from(int slot, int64_t n) const = 0;
  virtual void fork(int from, int to) = 0;
  virtual void select(std::span<const int32_t> index) = 0;
  virtual void save(int slot, ByteSink& sink) const = 0;
  virtual void load(int slot, ByteSource& source) = 0;
  virtual uint64_t bytes() const = 0;  // memory taken
};

// How large a state may get.
struct StateOptions {
  int slots = 1;
  int64_t chunk = 512;     // positions that one run appends at most
  int64_t context = 4096;  // positions that a slot holds at most
};

// How a weight will be read.
enum class WeightRole : uint8_t {
  encoded,  // by products and look-ups, in its encoding
  dense,    // as plain values of its type
};

// What placement asks. Types may hold symbols; weights are given by their file's line.
struct NodeQuery {
  const ir::Program& program;
  const ir::Graph& graph;
  const ir::Node& node;
  std::span<const ir::Type* const> operands;   // null: absent
  std::span<const TensorSpec* const> weights;  // null: not a weight
  Precision precision;
};

// One value or weight of a node in a compiled run, its shape concrete.
struct Operand {
  DType dtype = DType::f32;
  Shape shape;
  Buffer* buffer = nullptr;  // a value, at `offset`
  uint64_t offset = 0;
  Weight* weight = nullptr;  // or a weight
  // Not negative: names a value whose memory is made and read by nodes of this list alone, so that the
  // backend may keep it in a form of its own. Operands that only see it in another shape have the same name.
  int inner = -1;
  bool present() const { return buffer || weight; }
};

struct NodeCall {
  const ir::Program* program = nullptr;
  const ir::Node* node = nullptr;
  std::string name;  // of the first result, for messages
  std::vector<Operand> operands, results;
  std::vector<StateStore*> states;
  RandomSource* random = nullptr;  // null: seed 0
};

// A run of nodes with fixed shapes and places, ready to be repeated.
class Executable {
 public:
  virtual ~Executable() = default;
  virtual void enqueue() = 0;
  // For each node the kernel that was chosen, and "kernel: why not" for those skipped before it.
  struct Choice {
    std::string node, kernel;
    std::vector<std::string> skipped;
  };
  virtual std::vector<Choice> choices() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const std::string& name() const = 0;
  virtual std::string describe() const = 0;

  // Whether some kernel takes the node; if not, `why` says what is missing.
  virtual bool supports(const NodeQuery& query, std::string* why) const = 0;

  virtual std::unique_ptr<Buffer> allocate(uint64_t bytes) = 0;
  // Ordered with what was enqueued before. read() waits for it.
  virtual void write(Buffer& buffer, uint64_t offset, const void* data, uint64_t bytes) = 0;
  virtual void read(Buffer& buffer, uint64_t offset, void* data, uint64_t bytes) = 0;
  // The buffer's memory where the host may touch it between finish() and the next enqueue(), else null.
  virtual void* host_pointer(Buffer& buffer) = 0;

  // `bytes` stay mapped as long as the weight lives.
  virtual std::unique_ptr<Weight> load_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                              const Weight* scale, WeightRole role) = 0;
  virtual WeightRole weight_role(const ir::Node& node, int operand) const = 0;
  virtual std::unique_ptr<StateStore> make_state(const ir::State& state, const StateOptions& options,
                                                 const Precision& precision) = 0;
  // Bytes that each further position of a slot takes; 0: the state does not grow, or not beyond its window.
  virtual uint64_t position_bytes(const ir::State& state, const Precision& precision) const = 0;

  virtual std::unique_ptr<Executable> compile(std::span<const NodeCall> nodes,
                                              const Precision& precision) = 0;
  // Waits for all that was enqueued; throws what went wrong in it.
  virtual void finish() = 0;

  // Where the time goes, by operator and kernel, since profiling was switched on; empty where a backend
  // cannot tell.
  struct KernelTime {
    std::string op, kernel;
    uint64_t calls = 0;
    double seconds = 0;
  };
  virtual void set_profiling(bool) {}
  virtual std::vector<KernelTime> profile() const { return {}; }
};

}  // namespace cyb
