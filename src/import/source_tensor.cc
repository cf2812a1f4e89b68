// SPDX-License-Identifier: Apache-2.0
#include "import/source_tensor.h"

#include <algorithm>

#include "base/checked.h"
#include "base/error.h"

namespace cyb {
namespace {

class GgufSource : public SourceTensor {
 public:
  GgufSource(const GgufTensor& t, std::string name, GgufTransform transform)
      : SourceTensor(std::move(name), t.shape, to_string(t.type), t.name, t.size),
        tensor_(t),
        transform_(transform) {
    const GgufTypeInfo* info = gguf_type_info(t.type);
    row_bytes_ = static_cast<uint64_t>(row_length() / info->block_values * info->block_bytes);
    if (transform_.unpermute_heads > 0) {
      // A bias is a single row whose values are permuted as the rows of its matrix are.
      const int64_t n = permuted_length();
      if (n % (2 * transform_.unpermute_heads) != 0)
        throw error(ErrorKind::ShapeMismatch, "tensor '{}': {} rows are not {} heads of even size", t.name, n,
                    transform_.unpermute_heads);
    }
  }

  bool is_half() const override { return tensor_.type == GgufType::F16 || tensor_.type == GgufType::BF16; }
  GgufGrid grid() const override {
    return transform_.add == 0 && !is_vector() ? gguf_grid(tensor_.type) : GgufGrid{};
  }

  void read(int64_t first, int64_t count, float* out) const override {
    const int64_t n = row_length();
    if (transform_.unpermute_heads > 0 && is_vector()) {
      std::vector<float> all(static_cast<size_t>(n));
      gguf_decode(tensor_.type, tensor_.data, n, all.data());
      for (int64_t i = 0; i < n; i++) out[i] = all[static_cast<size_t>(permuted(i))];
    } else {
      runs(first, count, [&](int64_t from, int64_t rows, int64_t to) {
        gguf_decode(tensor_.type, row(from), rows * n, out + to * n);
      });
    }
    if (transform_.add != 0)
      for (int64_t i = 0; i < count * n; i++) out[i] += transform_.add;
  }

  void integers(int64_t first, int64_t count, int8_t* out, float* scales) const override {
    const int64_t n = row_length();
    runs(first, count, [&](int64_t from, int64_t rows, int64_t to) {
      gguf_integers(tensor_.type, row(from), rows * n, out + to * n, scales + to * (n / 32));
    });
  }

  void release(int64_t first, int64_t count) const override {
    if (tensor_.file)
      tensor_.file->drop(tensor_.offset + static_cast<uint64_t>(first) * row_bytes_,
                         static_cast<uint64_t>(count) * row_bytes_);
  }

 private:
  bool is_vector() const { return shape().size() < 2; }
  int64_t permuted_length() const { return is_vector() ? row_length() : rows(); }
  const uint8_t* row(int64_t r) const { return tensor_.data + static_cast<uint64_t>(r) * row_bytes_; }

  // Where row r of the checkpoint stands in the file: converters turn [heads, 2, d/2] into [heads, d/2, 2].
  int64_t permuted(int64_t r) const {
    const int64_t head = permuted_length() / transform_.unpermute_heads, half = head / 2;
    const int64_t in_head = r % head;
    return r / head * head + in_head % half * 2 + in_head / half;
  }

  // f(source row, number of rows, row of the output) over runs of rows that are adjacent in the source.
  template <class F>
  void runs(int64_t first, int64_t count, F f) const {
    if (transform_.unpermute_heads <= 0) return f(first, count, 0);
    for (int64_t i = 0; i < count; i++) f(permuted(first + i), 1, i);
  }

  GgufTensor tensor_;
  GgufTransform transform_;
  uint64_t row_bytes_;
};

class SafetensorSource : public SourceTensor {
 public:
  SafetensorSource(const SafeTensor& t, const SafeTensor* scale, int64_t block_rows, int64_t block_columns)
      : SourceTensor(t.name, t.shape, to_string(t.type), t.name, t.size + (scale ? scale->size : 0)),
        tensor_(t) {
    if (!scale) return;
    int64_t count = 1;
    for (int64_t n : scale->shape) count *= n;
    scales_.resize(static_cast<size_t>(count));
    safetensor_decode(scale->type, scale->data, count, scales_.data());
    const std::vector<int64_t> blocks = {ceil_div(rows(), block_rows), ceil_div(row_length(), block_columns)};
    if (count == 1) {
      block_rows_ = std::max<int64_t>(rows(), 1), block_columns_ = std::max<int64_t>(row_length(), 1);
    } else if (count == rows() && (scale->shape.size() == 1 || scale->shape.back() == 1)) {
      block_rows_ = 1, block_columns_ = std::max<int64_t>(row_length(), 1);
    } else if (scale->shape == blocks) {
      block_rows_ = block_rows, block_columns_ = block_columns;
    } else {
      throw error(ErrorKind::WeightFormat,
                  "tensor '{}': its scale '{}' has {} values, neither one, nor one a row ({}), nor one a "
                  "block of {}×{}",
                  t.name, scale->name, count, rows(), block_rows, block_columns);
    }
    scale_columns_ = ceil_div(row_length(), block_columns_);
  }

  bool is_half() const override {
    return tensor_.type == SafetensorType::F16 || tensor_.type == SafetensorType::BF16;
  }

  void read(int64_t first, int64_t count, float* out) const override {
    const int64_t n = row_length();
    safetensor_decode(tensor_.type, tensor_.data + first * n * size_of(tensor_.type), count * n, out);
    if (scales_.empty()) return;
    for (int64_t r = 0; r < count; r++) {
      const float* scale = scales_.data() + (first + r) / block_rows_ * scale_columns_;
      for (int64_t c = 0; c < n; c++) out[r * n + c] *= scale[c / block_columns_];
    }
  }

  void release(int64_t first, int64_t count) const override {
    const auto row_bytes = static_cast<uint64_t>(row_length() * size_of(tensor_.type));
    if (tensor_.file)
      tensor_.file->drop(tensor_.offset + static_cast<uint64_t>(first) * row_bytes,
                         static_cast<uint64_t>(count) * row_bytes);
  }

 private:
  SafeTensor tensor_;
  std::vector<float> scales_;
  int64_t block_rows_ = 1, block_columns_ = 1, scale_columns_ = 1;
};

class Joined : public SourceTensor {
 public:
  Joined(std::unique_ptr<SourceTensor> first, std::unique_ptr<SourceTensor> second)
      : SourceTensor(first->name(), {first->rows() + second->rows(), first->row_length()}, first->format(),
                     first->source_name(), first->source_bytes() + second->source_bytes()),
        parts_{std::move(first), std::move(second)} {}

  bool is_half() const override { return parts_[0]->is_half() && parts_[1]->is_half(); }
  GgufGrid grid() const override {
    const GgufGrid a = parts_[0]->grid(), b = parts_[1]->grid();
    return a.kind == b.kind && a.factor == b.factor ? a : GgufGrid{};
  }
  void read(int64_t first, int64_t count, float* out) const override {
    each(first, count, [&](const SourceTensor& t, int64_t from, int64_t rows, int64_t to) {
      t.read(from, rows, out + to * row_length());
    });
  }
  void integers(int64_t first, int64_t count, int8_t* out, float* scales) const override {
    each(first, count, [&](const SourceTensor& t, int64_t from, int64_t rows, int64_t to) {
      t.integers(from, rows, out + to * row_length(), scales + to * (row_length() / 32));
    });
  }
  void release(int64_t first, int64_t count) const override {
    each(first, count,
         [](const SourceTensor& t, int64_t from, int64_t rows, int64_t) { t.release(from, rows); });
  }

 private:
  // f(part, its first row, number of rows, row of the output)
  template <class F>
  void each(int64_t first, int64_t count, F f) const {
    const int64_t upper = parts_[0]->rows();
    const int64_t in_first = std::clamp<int64_t>(upper - first, 0, count);
    if (in_first > 0) f(*parts_[0], first, in_first, 0);
    if (count > in_first) f(*parts_[1], first + in_first - upper, count - in_first, in_first);
  }

  std::unique_ptr<SourceTensor> parts_[2];
};

}  // namespace

int64_t SourceTensor::rows() const {
  int64_t n = 1;
  for (size_t i = 0; i + 1 < shape_.size(); i++) n *= shape_[i];
  return n;
}

void SourceTensor::read_integers(int64_t, int64_t, int64_t*) const {
  throw error(ErrorKind::WeightFormat, "tensor '{}' is of no integer type", name_);
}

void SourceTensor::integers(int64_t, int64_t, int8_t*, float*) const {
  throw error(ErrorKind::WeightFormat, "tensor '{}' has no integers of its own", name_);
}

std::unique_ptr<SourceTensor> gguf_source(const GgufTensor& tensor, std::string name,
                                          GgufTransform transform) {
  const GgufTypeInfo* info = gguf_type_info(tensor.type);
  if (!info->decoded)
    throw error(ErrorKind::WeightFormat, "tensor '{}' is of type {}, which cannot be imported", tensor.name,
                info->name)
        .advise("types that can: {}", gguf_decoded_types());
  return std::make_unique<GgufSource>(tensor, std::move(name), transform);
}

std::unique_ptr<SourceTensor> joined_source(std::unique_ptr<SourceTensor> first,
                                            std::unique_ptr<SourceTensor> second) {
  if (first->shape().size() != 2 || second->shape().size() != 2 ||
      first->row_length() != second->row_length())
    throw error(ErrorKind::ShapeMismatch, "tensors '{}' and '{}' are no two halves of a matrix",
                first->source_name(), second->source_name());
  return std::make_unique<Joined>(std::move(first), std::move(second));
}

std::unique_ptr<SourceTensor> safetensor_source(const SafeTensor& tensor, const SafeTensor* scale,
                                                int64_t block_rows, int64_t block_columns) {
  return std::make_unique<SafetensorSource>(tensor, scale, block_rows, block_columns);
}

}  // namespace cyb
