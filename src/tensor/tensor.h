// SPDX-License-Identifier: Apache-2.0
// A tensor in host memory, row-major and contiguous: graph inputs and outputs, constants, host values.
#pragma once

#include <string>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace cyb {

class Tensor {
 public:
  Tensor() = default;
  // Zero-filled. Throws OutOfMemory where the size overflows.
  Tensor(DType type, const Shape& shape);

  template <class T>
  static Tensor of(DType type, const Shape& shape, const std::vector<T>& values) {
    Tensor t(type, shape);
    for (size_t i = 0; i < values.size(); i++) t.at<T>(i) = values[i];
    return t;
  }
  static Tensor i32(const Shape& shape, const std::vector<int32_t>& values) { return of(DType::i32, shape, values); }
  static Tensor i64(const Shape& shape, const std::vector<int64_t>& values) { return of(DType::i64, shape, values); }
  static Tensor f32(const Shape& shape, const std::vector<float>& values) { return of(DType::f32, shape, values); }

  DType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t elements() const { return shape_.elements(); }
  size_t bytes() const { return bytes_.size(); }
  void* data() { return bytes_.data(); }
  const void* data() const { return bytes_.data(); }
  template <class T>
  T& at(size_t i) {
    return reinterpret_cast<T*>(bytes_.data())[i];
  }
  template <class T>
  const T& at(size_t i) const {
    return reinterpret_cast<const T*>(bytes_.data())[i];
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes_.data());
  }
  std::vector<std::string>& strings() { return strings_; }
  const std::vector<std::string>& strings() const { return strings_; }

  // Element i of an integer or bool tensor.
  int64_t integer(size_t i) const;
  // Element i of any numeric tensor.
  double real(size_t i) const;
  void set_real(size_t i, double value);

  // The same bytes under another shape of as many elements.
  Tensor reshaped(const Shape& shape) const;

  // Bitwise equality of type, shape and content.
  friend bool operator==(const Tensor& a, const Tensor& b) {
    return a.type_ == b.type_ && a.shape_ == b.shape_ && a.bytes_ == b.bytes_ && a.strings_ == b.strings_;
  }

 private:
  DType type_ = DType::f32;
  Shape shape_;
  std::vector<uint8_t> bytes_;
  std::vector<std::string> strings_;  // only for DType::string
};

}  // namespace cyb
