// SPDX-License-Identifier: Apache-2.0
// For reference kernels: loops over element types and over broadcast operands.
#pragma once

#include <array>
#include <cstdint>

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

// 16-bit floats that compute as float.
struct F16 {
  uint16_t bits;
  F16() = default;
  F16(float v) : bits(f32_to_f16(v)) {}  // NOLINT
  operator float() const { return f16_to_f32(bits); }
};
struct Bf16 {
  uint16_t bits;
  Bf16() = default;
  Bf16(float v) : bits(f32_to_bf16(v)) {}  // NOLINT
  operator float() const { return bf16_to_f32(bits); }
};

template <class T>
struct TypeTag {
  using type = T;
};

// f(TypeTag<T>) for a numeric type; bool is uint8_t. Strings are not visited.
template <class F>
void visit_dtype(DType type, F&& f) {
  switch (type) {
    case DType::f32:
      return f(TypeTag<float>{});
    case DType::f64:
      return f(TypeTag<double>{});
    case DType::f16:
      return f(TypeTag<F16>{});
    case DType::bf16:
      return f(TypeTag<Bf16>{});
    case DType::i8:
      return f(TypeTag<int8_t>{});
    case DType::u8:
      return f(TypeTag<uint8_t>{});
    case DType::i16:
      return f(TypeTag<int16_t>{});
    case DType::u16:
      return f(TypeTag<uint16_t>{});
    case DType::i32:
      return f(TypeTag<int32_t>{});
    case DType::u32:
      return f(TypeTag<uint32_t>{});
    case DType::i64:
      return f(TypeTag<int64_t>{});
    case DType::u64:
      return f(TypeTag<uint64_t>{});
    case DType::boolean:
      return f(TypeTag<uint8_t>{});
    case DType::string:
      return;
  }
}

// f(TypeTag<unsigned integer>) of the elements' size, for operators that only move them.
template <class F>
void visit_size(DType type, F&& f) {
  switch (size_of(type)) {
    case 1:
      return f(TypeTag<uint8_t>{});
    case 2:
      return f(TypeTag<uint16_t>{});
    case 4:
      return f(TypeTag<uint32_t>{});
    default:
      return f(TypeTag<uint64_t>{});
  }
}

inline size_t bytes_of(const Arg& a) { return static_cast<size_t>(a.elements()) * size_of(a.dtype); }

inline std::array<int64_t, kMaxRank> strides_of(const Shape& shape) {
  std::array<int64_t, kMaxRank> s{};
  int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; i--) {
    s[static_cast<size_t>(i)] = step;
    step *= shape[i];
  }
  return s;
}

// Strides, in elements, of `shape` read as `out` by broadcasting.
inline std::array<int64_t, kMaxRank> broadcast_strides(const Shape& shape, const Shape& out) {
  std::array<int64_t, kMaxRank> strides{};
  int64_t step = 1;
  for (int i = 0; i < shape.rank(); i++) {
    const int from = shape.rank() - 1 - i, to = out.rank() - 1 - i;
    strides[static_cast<size_t>(to)] = shape[from] == 1 ? 0 : step;
    step *= shape[from];
  }
  return strides;
}

// f(out index, operand offsets) for each element of `out` in row-major order.
template <size_t N, class F>
void walk(const Shape& out, const std::array<std::array<int64_t, kMaxRank>, N>& strides, F&& f) {
  const int64_t n = out.elements();
  if (n == 0) return;
  std::array<int64_t, kMaxRank> index{};
  std::array<int64_t, N> at{};
  for (int64_t i = 0;; i++) {
    f(i, at);
    if (i + 1 == n) return;
    for (int a = out.rank() - 1; a >= 0; a--) {
      const auto axis = static_cast<size_t>(a);
      if (++index[axis] < out[a]) {
        for (size_t k = 0; k < N; k++) at[k] += strides[k][axis];
        break;
      }
      for (size_t k = 0; k < N; k++) at[k] -= strides[k][axis] * (out[a] - 1);
      index[axis] = 0;
    }
  }
}

// An axis attribute as an index.
inline int axis_of(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

}  // namespace cyb::cpu
