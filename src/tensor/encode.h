// SPDX-License-Identifier: Apache-2.0
// From f32 rows, from source integers with their scales, and from integers to the bytes of an encoding.
// Weights stream through in row ranges; several threads may encode different ranges of one tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/encoding.h"

namespace cyb {

// What encoding did to the values. Parts of one tensor are added in row order, so that the sums are
// reproducible.
struct EncodeStats {
  int64_t values = 0;
  double sum_squares = 0;        // of the values
  double sum_error_squares = 0;  // of value − decoded
  double max_error = 0;
  double max_magnitude = 0;
  int64_t reencoded_blocks = 0;  // source blocks with −128, which q8 of real weights does not hold

  void add(const EncodeStats& other);
  double rms() const;             // of the values
  double rms_error() const;       // absolute
  double relative_error() const;  // rms_error / rms; 0 for a tensor of zeros
};

// Largest |value|; throws WeightFormat naming the tensor and the index (`first` + place) at a NaN or
// infinity.
float max_magnitude(std::span<const float> values, std::string_view tensor, int64_t first = 0);

// The finest frac_bits with which values up to `magnitude` fit (for q8, q4: the blocks' scales). For 0 the
// default of the encoding. Throws WeightFormat when no allowed frac_bits holds it: such a tensor goes to u32.
int choose_frac_bits(Encoding encoding, double magnitude);
bool fits(Encoding encoding, int frac_bits, double magnitude);

// Source integers with their scales, for encode_quants(): what choose_frac_bits() needs to know of some
// blocks. A block with −128 counts for what it needs after it is encoded anew.
double quants_magnitude(std::span<const int8_t> quants, std::span<const double> scales);

enum class Q4Scale { searched, plain };

class TensorEncoder {
 public:
  // The spec with its frac_bits chosen; offset and size are not looked at. Throws WeightFormat if it is not
  // valid.
  explicit TensorEncoder(const TensorSpec& spec, Q4Scale q4_scale = Q4Scale::searched);

  const Layout& layout() const { return layout_; }
  int64_t rows() const { return layout_.all_rows(); }          // in stored order; experts follow each other
  int64_t row_values() const { return layout_.row_values(); }  // values of a row, in stored order
  int64_t row_blocks() const { return layout_.row_units(); }   // q8, q4: blocks of a row
  uint64_t size() const { return layout_.size; }

  // The bytes of rows [first, first + count). A range begins at a multiple of 8 rows of its matrix and ends
  // at one or at the matrix's end, where there are tiles; any range otherwise.
  struct Range {
    uint64_t offset = 0;
    uint64_t size = 0;
  };
  Range range(int64_t first, int64_t count) const;

  // f32 rows (count × row_values()) → range(first, count).size bytes. NaN, infinity and values that frac_bits
  // does not hold are WeightFormat errors with the index in stored order. Ternary takes values −1, 0 and 1
  // only.
  void encode(int64_t first, int64_t count, const float* values, uint8_t* out,
              EncodeStats* stats = nullptr) const;

  // Source integers kept: value = quant · scale / 127 (q8, quants −128…127) or quant · scale / 8 (q4, −8…7),
  // one scale a block of 32, count × row_blocks() blocks, ragged ones padded. Only the scale is rounded.
  void encode_quants(int64_t first, int64_t count, const int8_t* quants, const double* scales, uint8_t* out,
                     EncodeStats* stats = nullptr) const;

  // Integers of an integer or bool type (u64 as the same 64 bits); what the type does not hold is an error.
  void encode_integers(int64_t first, int64_t count, const int64_t* values, uint8_t* out) const;

 private:
  struct Row;  // one row's codes before they are put in place
  void check_range(int64_t first, int64_t count) const;
  void encode_fixed(int64_t r, const float* values, uint8_t* group, EncodeStats* stats) const;
  void encode_blocks(int64_t r, const float* values, Row* row, EncodeStats* stats) const;
  void encode_ternary(int64_t r, const float* values, uint8_t* group) const;
  void place_blocks(int64_t r, const Row& row, uint8_t* group) const;
  void clear_group(uint8_t* group) const;
  template <class F>
  void for_rows(int64_t first, int64_t count, uint8_t* out, F&& f) const;

  TensorSpec spec_;
  Layout layout_;
  Q4Scale q4_scale_;
};

// Logical row-major values in stored order, the order of TensorEncoder's rows (a copy where there is no
// `order`).
void to_stored_order(const TensorSpec& spec, const float* logical, float* stored);
void to_stored_order(const TensorSpec& spec, const int64_t* logical, int64_t* stored);

// A whole tensor of logical values at once, with frac_bits chosen and size filled in; offset stays.
std::vector<uint8_t> encode_tensor(TensorSpec* spec, std::span<const float> logical,
                                   EncodeStats* stats = nullptr, Q4Scale q4_scale = Q4Scale::searched);
std::vector<uint8_t> encode_tensor_integers(TensorSpec* spec, std::span<const int64_t> logical);

}  // namespace cyb
