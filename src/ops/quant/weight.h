// SPDX-License-Identifier: Apache-2.0
// A weight of 8-bit integers: the file's bytes, and the forms that products read, each made once.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

class IntegerWeight final : public Weight {
 public:
  IntegerWeight(const TensorSpec& spec, std::span<const uint8_t> bytes) : spec_(spec), bytes_(bytes) {}
  const TensorSpec& spec() const override { return spec_; }
  uint64_t extra_bytes() const override;
  // The values in the order of the shape; kept from the first call on.
  const uint8_t* values() const;
  // `bytes` of memory on a cache line, named by `key`, that `fill(values, out)` makes at the first call.
  const uint8_t* packed(uint64_t key, int64_t bytes,
                        const std::function<void(const uint8_t* values, uint8_t* out)>& fill) const;

 private:
  struct Form {
    uint64_t key;
    std::unique_ptr<uint8_t[]> memory;
    uint64_t bytes;
    uint8_t* data() const;
  };
  TensorSpec spec_;
  std::span<const uint8_t> bytes_;
  mutable std::mutex mutex_;
  mutable std::unique_ptr<Tensor> values_;
  mutable std::vector<Form> forms_;
};

// The weight of an operand, else null; and an operand's values either way.
const IntegerWeight* integer_weight(const Arg& a);
const uint8_t* integer_values(const Arg& a);
// The operand with `data` set.
Arg plain_integers(const Arg& a);

std::unique_ptr<Weight> load_integer_weight(const TensorSpec& spec, std::span<const uint8_t> bytes);

}  // namespace cyb::cpu
