// SPDX-License-Identifier: Apache-2.0
// A convolution's weight: the file's bytes, and the forms that kernels read, each made once.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

// Memory for floats, on a cache line.
class AlignedFloats {
 public:
  explicit AlignedFloats(int64_t count);
  ~AlignedFloats();
  AlignedFloats(const AlignedFloats&) = delete;
  AlignedFloats& operator=(const AlignedFloats&) = delete;
  float* data() { return data_; }
  uint64_t bytes() const { return bytes_; }

 private:
  float* data_;
  uint64_t bytes_;
};

class ConvWeight final : public Weight {
 public:
  ConvWeight(const TensorSpec& spec, std::span<const uint8_t> bytes, const Weight* scale);
  const TensorSpec& spec() const override { return spec_; }
  uint64_t extra_bytes() const override;

  // The values as the file's shape orders them, of its type; kept from the first call on.
  const void* values() const;
  // A form of f32 values: `key` names it, `fill(values, out)` makes it.
  const float* packed(uint64_t key, int64_t floats,
                      const std::function<void(const float* values, float* out)>& fill) const;

 private:
  Tensor decode() const;

  TensorSpec spec_;
  std::span<const uint8_t> bytes_;
  std::vector<float> scales_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Tensor> values_;
  struct Form {
    uint64_t key;
    std::unique_ptr<AlignedFloats> floats;
  };
  mutable std::vector<Form> forms_;
};

// The weight of operand i, else null; and its plain values either way.
const ConvWeight* conv_weight(const Arg& a);
const void* plain_values(const Arg& a);

std::unique_ptr<Weight> load_conv_weight(const TensorSpec& spec, std::span<const uint8_t> bytes,
                                         const Weight* scale);

}  // namespace cyb::cpu
