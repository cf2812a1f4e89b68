// SPDX-License-Identifier: Apache-2.0
// Linear recurrences, and the state that they keep from run to run: one value a channel.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "ops/rows.h"

namespace cyb::cpu {

using ir::Op;

namespace {

class TensorState final : public StateStore {
 public:
  TensorState(int64_t channels, int slots)
      : channels_(channels),
        values_(static_cast<size_t>(slots) * static_cast<size_t>(channels), 0.0f),
        lengths_(static_cast<size_t>(slots), 0) {}

  float* row(int64_t slot) { return values_.data() + slot * channels_; }
  void advance(int64_t slot, int64_t n) { lengths_[static_cast<size_t>(slot)] += n; }
  int64_t slots() const { return static_cast<int64_t>(lengths_.size()); }

  int64_t length(int slot) const override { return lengths_.at(static_cast<size_t>(slot)); }
  // What went before cannot be had back: a shorter sequence begins anew.
  int64_t recompute_from(int slot, int64_t n) const override { return n >= length(slot) ? length(slot) : 0; }
  int64_t truncate(int slot, int64_t n) override {
    const int64_t from = recompute_from(slot, n);
    if (from == 0) std::fill_n(row(slot), channels_, 0.0f);
    lengths_.at(static_cast<size_t>(slot)) = from;
    return from;
  }
  void fork(int from, int to) override {
    lengths_.at(static_cast<size_t>(to)) = length(from);
    if (from != to) std::copy_n(row(from), channels_, row(to));
  }
  void select(std::span<const int32_t> index) override {
    if (index.size() != lengths_.size())
      throw error(ErrorKind::ShapeMismatch, "select with {} indices on {} sequences", index.size(),
                  lengths_.size());
    std::vector<float> values(values_.size());
    std::vector<int64_t> lengths;
    for (size_t b = 0; b < index.size(); b++) {
      lengths.push_back(length(index[b]));
      std::copy_n(row(index[b]), channels_, values.data() + static_cast<int64_t>(b) * channels_);
    }
    values_ = std::move(values);
    lengths_ = std::move(lengths);
  }
  void save(int slot, ByteSink& sink) const override {
    const int64_t head[] = {channels_, length(slot)};
    sink.write(head, sizeof head);
    sink.write(values_.data() + slot * channels_, static_cast<size_t>(channels_) * sizeof(float));
  }
  void load(int slot, ByteSource& source) override {
    int64_t head[2];
    source.read(head, sizeof head);
    if (head[0] != channels_ || head[1] < 0)
      throw error(ErrorKind::InvalidFile, "a saved state of {} channels where there are {}", head[0],
                  channels_);
    std::vector<float> values(static_cast<size_t>(channels_));
    source.read(values.data(), values.size() * sizeof(float));
    std::copy(values.begin(), values.end(), row(slot));
    lengths_.at(static_cast<size_t>(slot)) = head[1];
  }
  uint64_t bytes() const override { return values_.size() * sizeof(float); }

 private:
  int64_t channels_;
  std::vector<float> values_;
  std::vector<int64_t> lengths_;
};

void run_linear_recurrence(Call& c) {
  const Shape& s = c.in[0].shape;
  const int64_t batch = s[0], time = s[1], channels = s[2];
  auto* state = c.states.empty() ? nullptr : static_cast<TensorState*>(c.states[0]);
  for (int64_t b = 0; b < batch; b++) {
    int64_t n = c.has(2) ? c.in[2].as<int32_t>()[b] : time;
    n = std::clamp<int64_t>(n, 0, time);
    const float* before = state ? state->row(b) : nullptr;
    for (int64_t t = 0; t < time; t++) {
      const int64_t at = (b * time + t) * channels;
      const float *x = c.in[0].f32() + at, *f = c.in[1].f32() + at;
      float* y = c.out[0].f32() + at;
      if (t >= n) {
        std::memset(y, 0, static_cast<size_t>(channels) * sizeof(float));
        continue;
      }
      for (int64_t i = 0; i < channels; i++) y[i] = before ? f[i] * before[i] + x[i] : x[i];
      before = y;
    }
    if (!state || n == 0) continue;
    std::copy_n(before, channels, state->row(b));
    state->advance(b, n);
  }
}

}  // namespace

std::unique_ptr<StateStore> make_tensor_state(const ir::State& state, const StateOptions& options) {
  if (state.type.dtype != DType::f32 || state.type.rank() != 2 || !state.type.dims[1].is_number() ||
      state.type.dims[1].number() < 1 || state.type.dims[1].number() > 1 << 24)
    throw error(ErrorKind::UnsupportedOp, "state '{}' is no tensor(f32[B, C])", state.name)
        .advise("states of one value a channel are supported");
  return std::make_unique<TensorState>(state.type.dims[1].number(), options.slots);
}

void add_linear_recurrence_rows(KernelTable& t) {
  t.add(
      {.op = Op::LinearRecurrence, .name = "linear_recurrence", .cost = 1000, .run = run_linear_recurrence});
}

}  // namespace cyb::cpu
