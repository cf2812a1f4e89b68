// SPDX-License-Identifier: Apache-2.0
// reduce.h on sixteen lanes, four vectors at a time.
#pragma once

#include "ops/reduce/reduce_ops.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

template <ReduceOp op>
CYB_INLINE Vec join(Vec a, Vec x) {
  if constexpr (op == ReduceOp::sum) return a + x;
  if constexpr (op == ReduceOp::product) return a * x;
  // A NaN of x is taken, and one of a kept.
  if constexpr (op == ReduceOp::max) return if_equal(a, a, if_less(x, a, a, x), a);
  if constexpr (op == ReduceOp::min) return if_equal(a, a, if_less(a, x, a, x), a);
}

template <ReduceOp op>
CYB_INLINE float identity_of() {
  return op == ReduceOp::sum       ? 0.0f
         : op == ReduceOp::product ? 1.0f
         : op == ReduceOp::max     ? -__builtin_inff()
                                   : __builtin_inff();
}

template <ReduceOp op>
CYB_INLINE float join_lanes(Vec x) {
  if constexpr (op == ReduceOp::sum) return reduce_add(x);
  alignas(64) float lanes[16];
  if constexpr (op != ReduceOp::product) {
    const float sum = reduce_add(x);
    if (sum == sum) return op == ReduceOp::max ? reduce_max(x) : -reduce_max(neg(x));
  }
  store(lanes, x);
  float r = lanes[0];
  for (int i = 1; i < 16; ++i) {
    if constexpr (op == ReduceOp::product)
      r = r * lanes[i];
    else if (r == r && (lanes[i] != lanes[i] || (op == ReduceOp::max ? r < lanes[i] : lanes[i] < r)))
      r = lanes[i];
  }
  return r;
}

template <ReduceOp op>
static float piece_of(const float* x, int64_t n) {
  const float none = identity_of<op>();
  Vec a = set1(none), b = a, c = a, d = a;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
    a = join<op>(a, load(x + i));
    b = join<op>(b, load(x + i + 16));
    c = join<op>(c, load(x + i + 32));
    d = join<op>(d, load(x + i + 48));
  }
  for (; i < n; i += 16) a = join<op>(a, load_first(x + i, n - i, none));
  return join_lanes<op>(join<op>(join<op>(a, b), join<op>(c, d)));
}

static float reduce_piece(ReduceOp op, const float* x, int64_t n) {
  switch (op) {
    case ReduceOp::product:
      return piece_of<ReduceOp::product>(x, n);
    case ReduceOp::max:
      return piece_of<ReduceOp::max>(x, n);
    case ReduceOp::min:
      return piece_of<ReduceOp::min>(x, n);
    default:
      return piece_of<ReduceOp::sum>(x, n);
  }
}

// Sums are taken over 256 rows, then these sums are added: long columns stay exact.
template <ReduceOp op>
static void columns_of(const float* x, int64_t n, int64_t inner, int64_t width, float* y, float scale) {
  const Vec none = set1(identity_of<op>());
  for (int64_t at = 0; at < width; at += 64) {
    const int64_t left = width - at;
    Vec total[4] = {none, none, none, none};
    for (int64_t from = 0; from < n; from += 256) {
      const int64_t to = n - from < 256 ? n : from + 256;
      Vec part[4] = {none, none, none, none};
      const float* row = x + from * inner + at;
      if (left >= 64) {
        for (int64_t k = from; k < to; ++k, row += inner)
          CYB_UNROLL for (int j = 0; j < 4; ++j) part[j] = join<op>(part[j], load(row + 16 * j));
      } else {
        for (int64_t k = from; k < to; ++k, row += inner)
          for (int j = 0; 16 * j < left; ++j)
            part[j] = join<op>(part[j], load_first(row + 16 * j, left - 16 * j));
      }
      for (int j = 0; j < 4; ++j) total[j] = join<op>(total[j], part[j]);
    }
    for (int j = 0; j < 4 && 16 * j < left; ++j)
      store_first(y + at + 16 * j, scale == 1.0f ? total[j] : total[j] / set1(scale), left - 16 * j);
  }
}

static void reduce_columns(ReduceOp op, const float* x, int64_t n, int64_t inner, int64_t width, float* y) {
  switch (op) {
    case ReduceOp::product:
      return columns_of<ReduceOp::product>(x, n, inner, width, y, 1.0f);
    case ReduceOp::max:
      return columns_of<ReduceOp::max>(x, n, inner, width, y, 1.0f);
    case ReduceOp::min:
      return columns_of<ReduceOp::min>(x, n, inner, width, y, 1.0f);
    case ReduceOp::mean:
      return columns_of<ReduceOp::sum>(x, n, inner, width, y, static_cast<float>(n));
    case ReduceOp::sum:
      return columns_of<ReduceOp::sum>(x, n, inner, width, y, 1.0f);
  }
}

CYB_INLINE float extreme_of(const float* x, int64_t n, bool largest) {
  return largest ? piece_of<ReduceOp::max>(x, n) : piece_of<ReduceOp::min>(x, n);
}

// The piece that holds the result first, then the place in it.
static int64_t arg_of(const float* x, int64_t n, bool largest, bool last) {
  constexpr int64_t kPiece = 512;
  float best = x[0];
  int64_t start = 0;
  for (int64_t i = 0; i < n; i += kPiece) {
    const float v = extreme_of(x + i, n - i < kPiece ? n - i : kPiece, largest);
    if (best != best) break;  // the first NaN, of whatever piece, was there
    if (v != v || (largest ? best < v : v < best) || (last && v == best)) best = v, start = i;
  }
  const int64_t end = n - start < kPiece ? n : start + kPiece;
  if (best != best) {
    for (int64_t i = start; i < end; ++i)
      if (x[i] != x[i]) return i;
    return 0;
  }
  if (last) {
    for (int64_t i = end; i-- > start;)
      if (x[i] == best) return i;
  }
  for (int64_t i = start; i < end; ++i)
    if (x[i] == best) return i;
  return 0;
}

constexpr ReduceKernels make_reduce_kernels() { return {reduce_piece, reduce_columns, arg_of}; }

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
