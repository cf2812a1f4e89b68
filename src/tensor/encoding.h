// SPDX-License-Identifier: Apache-2.0
// The five encodings of weights, as docs/model-format.md defines them: where the bytes of a tensor stand,
// and the exact value of each code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace cyb {

enum class Encoding : uint8_t { u32, u16, q8, q4, ternary };

const char* to_string(Encoding encoding);
std::optional<Encoding> parse_encoding(std::string_view name);

// One line of the `tensors` section.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;  // rank 0–8; an axis may be 0
  Encoding encoding = Encoding::u32;
  uint64_t offset = 0;  // in the weights, a multiple of 4096
  uint64_t size = 0;    // bytes
  int frac_bits = 16;
  std::vector<int> order;  // logical axes in stored order; empty: as they are
  int tile = 0;            // 0 or 8
  DType type = DType::f32;
  bool bits = false;  // u32 words are IEEE f32 patterns
  int zero = 0;       // 0 or 128: value = decoded + zero
  int words = 1;      // 1 or 2 u32 words a value
};

constexpr int kBlock = 32;  // values of a q8 or q4 block
constexpr int kTileRows = 8;
constexpr int kQ8BlockBytes = 34;
constexpr int kQ4BlockBytes = 18;

int default_frac_bits(Encoding encoding);  // u32 16, others 8 (ternary 0)
// What a tensor line without the key `frac_bits` means: 0 for integer types and bit patterns, else the
// default.
int default_frac_bits(const TensorSpec& spec);

// Where the bytes of a tensor stand. The stored shape is cut into `matrices` of `rows` rows; a row holds
// `segments` runs of `columns` values. Experts are several matrices; only tiled convolutions have several
// segments.
struct Layout {
  std::vector<int64_t> stored;  // the shape in stored order
  int64_t matrices = 1;
  int64_t rows = 1;
  int64_t segments = 1;
  int64_t columns = 1;
  int64_t units = 1;  // of a segment: blocks (q8, q4), values (u16, u32), groups of 16 (tiled) or 4 (ternary)
  int group_rows = 1;        // 8 with tiles: rows that stand together
  uint64_t group_bytes = 0;  // bytes of such a group
  uint64_t size = 0;         // bytes of the tensor

  int64_t row_values() const { return segments * columns; }
  int64_t row_units() const { return segments * units; }
  int64_t all_rows() const { return matrices * rows; }
  int64_t groups() const { return (rows + group_rows - 1) / group_rows; }  // of one matrix
  // The group of row r of all_rows(), in bytes; the row's place in it is its row in the matrix % group_rows.
  uint64_t group_offset(int64_t r) const {
    return static_cast<uint64_t>((r / rows) * groups() + r % rows / group_rows) * group_bytes;
  }
  int row_in_group(int64_t r) const { return static_cast<int>(r % rows % group_rows); }
};

// Checks everything but offset and size: rank, axes, and that shape, encoding and addenda go together. Throws
// WeightFormat with the tensor's name.
Layout layout_of(const TensorSpec& spec);
inline void validate(const TensorSpec& spec) { layout_of(spec); }
inline uint64_t encoded_size(const TensorSpec& spec) { return layout_of(spec).size; }

// Values of the shape; throws WeightFormat when the product or an axis is out of range.
int64_t elements_of(const TensorSpec& spec);

// Whether the line needs format version 3.
bool uses_addenda(const TensorSpec& spec);

// The smallest and largest frac_bits that the format allows.
constexpr int min_frac_bits(Encoding e) { return e == Encoding::u32 ? -97 : -113; }
constexpr int max_frac_bits(Encoding e) { return e == Encoding::u32 ? 156 : 140; }

// For each stored axis, the distance of neighbours in the logical row-major tensor.
std::vector<int64_t> logical_strides(const TensorSpec& spec);

}  // namespace cyb
