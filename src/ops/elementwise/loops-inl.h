// SPDX-License-Identifier: Apache-2.0
// loops.h, compiled for one instruction set.
#pragma once

#include <type_traits>

#include "ops/elementwise/loops.h"
#include "ops/simd/vec-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// Small integers compute in 32 unsigned bits and wide ones in 64, where wrapping is defined.
template <class T>
using Wrapping = std::conditional_t<std::is_floating_point_v<T>, T,
                                    std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>>;

template <LoopOp op, class T>
static inline auto loop_value(T a, T b) {
  using W = Wrapping<T>;
  if constexpr (op == LoopOp::add) return static_cast<T>(static_cast<W>(a) + static_cast<W>(b));
  if constexpr (op == LoopOp::sub) return static_cast<T>(static_cast<W>(a) - static_cast<W>(b));
  if constexpr (op == LoopOp::mul) return static_cast<T>(static_cast<W>(a) * static_cast<W>(b));
  if constexpr (op == LoopOp::min) return a != a || a < b ? a : b;
  if constexpr (op == LoopOp::max) return a != a || a > b ? a : b;
  if constexpr (op == LoopOp::equal) return static_cast<uint8_t>(a == b);
  if constexpr (op == LoopOp::less) return static_cast<uint8_t>(a < b);
  if constexpr (op == LoopOp::less_equal) return static_cast<uint8_t>(a <= b);
  if constexpr (op == LoopOp::both) return static_cast<uint8_t>((a != 0) & (b != 0));
  if constexpr (op == LoopOp::either) return static_cast<uint8_t>((a | b) != 0);
  if constexpr (op == LoopOp::differ) return static_cast<uint8_t>((a != 0) != (b != 0));
}

template <LoopOp op, class T>
static void binary_loop(const void* pa, int64_t a_step, const void* pb, int64_t b_step, void* py, int64_t n) {
  using Y = decltype(loop_value<op, T>(T(), T()));
  const T* a = static_cast<const T*>(pa);
  const T* b = static_cast<const T*>(pb);
  Y* y = static_cast<Y*>(py);
  if (a_step && b_step) {
    for (int64_t i = 0; i < n; ++i) y[i] = loop_value<op, T>(a[i], b[i]);
  } else if (a_step) {
    const T one = *b;
    for (int64_t i = 0; i < n; ++i) y[i] = loop_value<op, T>(a[i], one);
  } else {
    const T one = *a;
    for (int64_t i = 0; i < n; ++i) y[i] = loop_value<op, T>(one, b_step ? b[i] : *b);
  }
}

template <class T>
static BinaryLoop binary_of(LoopOp op) {
  switch (op) {
    case LoopOp::add:
      return binary_loop<LoopOp::add, T>;
    case LoopOp::sub:
      return binary_loop<LoopOp::sub, T>;
    case LoopOp::mul:
      return binary_loop<LoopOp::mul, T>;
    case LoopOp::min:
      return binary_loop<LoopOp::min, T>;
    case LoopOp::max:
      return binary_loop<LoopOp::max, T>;
    case LoopOp::equal:
      return binary_loop<LoopOp::equal, T>;
    case LoopOp::less:
      return binary_loop<LoopOp::less, T>;
    case LoopOp::less_equal:
      return binary_loop<LoopOp::less_equal, T>;
    default:
      return nullptr;
  }
}

static BinaryLoop find_binary(LoopOp op, DType type) {
  switch (type) {
    case DType::f32:
      return binary_of<float>(op);
    case DType::f64:
      return binary_of<double>(op);
    case DType::i32:
      return binary_of<int32_t>(op);
    case DType::i64:
      return binary_of<int64_t>(op);
    case DType::boolean:
      switch (op) {
        case LoopOp::both:
          return binary_loop<LoopOp::both, uint8_t>;
        case LoopOp::either:
          return binary_loop<LoopOp::either, uint8_t>;
        case LoopOp::differ:
          return binary_loop<LoopOp::differ, uint8_t>;
        default:
          return nullptr;
      }
    default:
      return nullptr;
  }
}

// One value of either side is read once; the loop then has no step.
template <class T>
static void select_loop(const uint8_t* __restrict c, int64_t step, const void* pa, int64_t a_step,
                        const void* pb, int64_t b_step, void* py, int64_t n) {
  const T* __restrict a = static_cast<const T*>(pa);
  const T* __restrict b = static_cast<const T*>(pb);
  T* __restrict y = static_cast<T*>(py);
  if (n <= 0) return;
  const T one_a = *a, one_b = *b;
  if (!step) {
    const bool chosen = *c != 0;
    const T* from = chosen ? a : b;
    if (chosen ? a_step : b_step) {
      for (int64_t i = 0; i < n; ++i) y[i] = from[i];
    } else {
      for (int64_t i = 0; i < n; ++i) y[i] = chosen ? one_a : one_b;
    }
  } else if (a_step && b_step) {
    for (int64_t i = 0; i < n; ++i) {
      const T p = a[i], q = b[i];
      y[i] = c[i] ? p : q;
    }
  } else if (a_step) {
    for (int64_t i = 0; i < n; ++i) {
      const T p = a[i];
      y[i] = c[i] ? p : one_b;
    }
  } else if (b_step) {
    for (int64_t i = 0; i < n; ++i) {
      const T q = b[i];
      y[i] = c[i] ? one_a : q;
    }
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = c[i] ? one_a : one_b;
  }
}

static SelectLoop find_select(int bytes) {
  switch (bytes) {
    case 1:
      return select_loop<uint8_t>;
    case 2:
      return select_loop<uint16_t>;
    case 4:
      return select_loop<uint32_t>;
    default:
      return select_loop<uint64_t>;
  }
}

struct Bool {
  uint8_t v;
};

// What does not fit saturates, NaN is 0: the value is brought into the range before it is converted.
template <class Y, class X>
static inline Y cast_value(X x) {
  if constexpr (std::is_same_v<X, Bool>) {
    return x.v ? Y(1) : Y(0);
  } else if constexpr (std::is_same_v<Y, Bool>) {
    return Bool{static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_floating_point_v<X> && std::is_integral_v<Y>) {
    constexpr bool is_signed = std::is_signed_v<Y>;
    constexpr int bits = static_cast<int>(8 * sizeof(Y)) - (is_signed ? 1 : 0);
    constexpr X above =
        static_cast<X>(uint64_t{1} << (bits / 2)) * static_cast<X>(uint64_t{1} << (bits - bits / 2));
    constexpr X lowest = is_signed ? -above : X(0);
    constexpr bool exact = std::is_same_v<X, double> ? bits < 53 : bits < 24;
    // The largest that still converts.
    constexpr X highest =
        exact ? above - X(1) : above * (X(1) - (std::is_same_v<X, double> ? X(0x1p-53) : X(0x1p-24)));
    constexpr Y top = static_cast<Y>(is_signed ? (uint64_t{1} << bits) - 1 : ~uint64_t{0});
    X v = x < lowest ? lowest : x;
    v = v < highest ? v : highest;  // a NaN becomes `highest` here and 0 below
    const Y y = static_cast<Y>(v);
    return x != x ? Y(0) : x >= above ? top : y;
  } else {
    return static_cast<Y>(x);
  }
}

template <class X, class Y>
static void cast_loop(const void* px, void* py, int64_t n) {
  const X* __restrict x = static_cast<const X*>(px);
  Y* __restrict y = static_cast<Y*>(py);
  for (int64_t i = 0; i < n; ++i) y[i] = cast_value<Y>(x[i]);
}

static void cast_from_half(const void* px, void* py, int64_t n) {
  const uint16_t* x = static_cast<const uint16_t*>(px);
  float* y = static_cast<float*>(py);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, load_half(x + i));
  for (; i < n; ++i) y[i] = f16_to_f32(x[i]);
}
static void cast_to_half(const void* px, void* py, int64_t n) {
  const float* x = static_cast<const float*>(px);
  uint16_t* y = static_cast<uint16_t*>(py);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) store_half(y + i, load(x + i));
  for (; i < n; ++i) y[i] = f32_to_f16(x[i]);
}

template <class X>
static CastLoop cast_to(DType to) {
  switch (to) {
    case DType::f32:
      return cast_loop<X, float>;
    case DType::f64:
      return cast_loop<X, double>;
    case DType::i8:
      return cast_loop<X, int8_t>;
    case DType::u8:
      return cast_loop<X, uint8_t>;
    case DType::i32:
      return cast_loop<X, int32_t>;
    case DType::i64:
      return cast_loop<X, int64_t>;
    case DType::boolean:
      if constexpr (std::is_same_v<X, Bool>)
        return nullptr;
      else
        return cast_loop<X, Bool>;
    case DType::f16:
      if constexpr (std::is_same_v<X, float>) return cast_to_half;
      return nullptr;
    default:
      return nullptr;
  }
}

static CastLoop find_cast(DType from, DType to) {
  switch (from) {
    case DType::f32:
      return cast_to<float>(to);
    case DType::f64:
      return cast_to<double>(to);
    case DType::i8:
      return cast_to<int8_t>(to);
    case DType::u8:
      return cast_to<uint8_t>(to);
    case DType::i32:
      return cast_to<int32_t>(to);
    case DType::i64:
      return cast_to<int64_t>(to);
    case DType::boolean:
      return cast_to<Bool>(to);
    case DType::f16:
      return to == DType::f32 ? cast_from_half : nullptr;
    default:
      return nullptr;
  }
}

constexpr LoopKernels make_loop_kernels() { return {find_binary, find_select, find_cast}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
