// SPDX-License-Identifier: Apache-2.0
// A tensor of a source under the name, the shape and with the values of the Hugging Face checkpoint, read in
// rows of its last axis. What the source format did to it (permuted rows, 1 + w, 8-bit floats with scales) is
// undone here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "import/gguf_blocks.h"
#include "import/gguf_file.h"
#include "import/safetensors_file.h"
#include "tensor/dtype.h"

namespace cyb {

class SourceTensor {
 public:
  virtual ~SourceTensor() = default;

  const std::string& name() const { return name_; }
  const std::vector<int64_t>& shape() const { return shape_; }
  const std::string& format() const { return format_; }  // "Q4_0", "BF16": for reports
  const std::string& source_name() const { return source_name_; }
  uint64_t source_bytes() const { return source_bytes_; }
  int64_t row_length() const { return shape_.empty() ? 1 : shape_.back(); }
  int64_t rows() const;
  int64_t elements() const { return rows() * row_length(); }
  // Whether the values were 16-bit floats in the source.
  virtual bool is_half() const { return false; }

  // What the graph sees: floats are read as f32, integers and bools exactly.
  virtual DType type() const { return DType::f32; }

  // Rows [first, first + count) as f32. Safe from several threads.
  virtual void read(int64_t first, int64_t count, float* out) const = 0;
  // The same rows of an integer or bool type (u64 as the same 64 bits).
  virtual void read_integers(int64_t first, int64_t count, int64_t* out) const;
  // The source's integers, where grid().kind is not none: see gguf_integers.
  virtual GgufGrid grid() const { return {}; }
  virtual void integers(int64_t first, int64_t count, int8_t* out, float* scales) const;
  // Gives the source's pages of these rows back to the system.
  virtual void release(int64_t first, int64_t count) const = 0;

 protected:
  SourceTensor(std::string name, std::vector<int64_t> shape, std::string format, std::string source_name,
               uint64_t source_bytes)
      : name_(std::move(name)),
        shape_(std::move(shape)),
        format_(std::move(format)),
        source_name_(std::move(source_name)),
        source_bytes_(source_bytes) {}

 private:
  std::string name_;
  std::vector<int64_t> shape_;
  std::string format_, source_name_;
  uint64_t source_bytes_;
};

// What a GGUF converter did to a tensor.
struct GgufTransform {
  int64_t unpermute_heads = 0;  // > 0: rows of each head are interleaved for rotary pairs
  float add = 0;                // added to each value: −1 for norms that hold 1 + w
};
std::unique_ptr<SourceTensor> gguf_source(const GgufTensor& tensor, std::string name,
                                          GgufTransform transform);

// The rows of `first`, then those of `second`, under the first one's name. Throws ShapeMismatch where they are no
// two matrices of the same width.
std::unique_ptr<SourceTensor> joined_source(std::unique_ptr<SourceTensor> first,
                                            std::unique_ptr<SourceTensor> second);

// `scale` (may be null) multiplies an 8-bit float tensor: one value, one a row, or one a block of
// block_rows × block_columns. Throws WeightFormat when its shape fits none of these.
std::unique_ptr<SourceTensor> safetensor_source(const SafeTensor& tensor, const SafeTensor* scale,
                                                int64_t block_rows, int64_t block_columns);

}  // namespace cyb
