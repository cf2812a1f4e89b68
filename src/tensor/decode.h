// SPDX-License-Identifier: Apache-2.0
// The exact values of encoded bytes: whole tensors in logical order, single rows, integers, and the check of
// codes that a well-formed file never holds. `bytes` is always the whole tensor, spec.size long.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tensor/encoding.h"
#include "tensor/tensor.h"

namespace cyb {

// Writes elements_of(spec) values in logical order. Integer types become the nearest f32. Ternary values are
// −1, 0, 1 unless `scales` (the sibling tensor NAME.scale) is given: one for all, or one for each of equal
// runs of rows.
void decode(const TensorSpec& spec, std::span<const uint8_t> bytes, float* out,
            std::span<const float> scales = {});
std::vector<float> decode(const TensorSpec& spec, std::span<const uint8_t> bytes,
                          std::span<const float> scales = {});

// The tensor as graphs see it: of spec.type.
Tensor decode_tensor(const TensorSpec& spec, std::span<const uint8_t> bytes,
                     std::span<const float> scales = {});

// Integer and bool types; u64 as the same 64 bits. Throws InvalidFile at a value that the type does not hold.
void decode_integers(const TensorSpec& spec, std::span<const uint8_t> bytes, int64_t* out);

// Looks up rows along the first logical axis. It must be stored first.
class RowDecoder {
 public:
  RowDecoder(const TensorSpec& spec, std::span<const uint8_t> bytes, std::span<const float> scales = {});

  int64_t rows() const { return rows_; }
  int64_t row_values() const { return row_values_; }
  // row_values() values in logical order. `row` must be in [0, rows()).
  void decode(int64_t row, float* out) const;

 private:
  TensorSpec spec_;
  Layout layout_;
  std::span<const uint8_t> bytes_;
  std::span<const float> scales_;
  std::vector<int64_t> place_;  // with `order`: where each value of a stored row group goes
  int64_t rows_ = 0, row_values_ = 0, stored_rows_ = 0;
};

void decode_row(const TensorSpec& spec, std::span<const uint8_t> bytes, int64_t row, float* out);

// Throws InvalidFile where padding is not the code of zero with scale 0, or a code is forbidden: ternary 11,
// −128 in q8 of real weights, scales of integer types other than 127 (q8) and 8 (q4), integers outside their
// type.
void check_codes(const TensorSpec& spec, std::span<const uint8_t> bytes);

}  // namespace cyb
