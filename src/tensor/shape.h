// SPDX-License-Identifier: Apache-2.0
// Concrete shapes of rank 0–8.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace cyb {

constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span<const int64_t>(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
    for (int i = 0; i < rank_ && i < kMaxRank; i++) dims_[i] = dims[static_cast<size_t>(i)];
  }

  int rank() const { return rank_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  int64_t back() const { return dims_[rank_ - 1]; }
  void push_back(int64_t dim) { dims_[rank_++] = dim; }
  const int64_t* begin() const { return dims_; }
  const int64_t* end() const { return dims_ + rank_; }

  // Product of the axes [from, to); the whole by default.
  int64_t elements(int from = 0, int to = kMaxRank) const {
    int64_t n = 1;
    for (int i = from; i < rank_ && i < to; i++) n *= dims_[i];
    return n;
  }

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; i++)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  int rank_ = 0;
  int64_t dims_[kMaxRank] = {};
};

std::string to_string(const Shape& shape);  // "[2, 3]"

}  // namespace cyb
