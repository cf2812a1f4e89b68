// SPDX-License-Identifier: Apache-2.0
// norm.h on sixteen lanes.
#pragma once

#include "ops/norm/norm.h"
#include "ops/simd/math-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

struct PlainSum {
  CYB_LAMBDA Vec operator()(Vec x, Vec acc) const { return acc + x; }
};
struct SquareSum {
  Vec mean;
  CYB_LAMBDA Vec operator()(Vec x, Vec acc) const {
    const Vec d = x - mean;
    return fma(d, d, acc);
  }
};

// Sums over 64 lanes: block b of sixteen goes to accumulator b mod 4; lanes beyond the row are `fill`.
template <class Step>
CYB_INLINE float sum_row(const float* x, int64_t n, float fill, Step step) {
  Vec acc[4];
  CYB_UNROLL for (int j = 0; j < 4; ++j) acc[j] = set1(0.0f);
  int64_t i = 0;
  for (; i + 64 <= n; i += 64)
    CYB_UNROLL for (int j = 0; j < 4; ++j) acc[j] = step(load(x + i + 16 * j), acc[j]);
  for (int j = 0; i < n; i += 16, ++j) acc[j] = step(load_first(x + i, n - i, fill), acc[j]);
  return reduce_add((acc[0] + acc[1]) + (acc[2] + acc[3]));
}

// Sums of very long rows by pieces of 2^16, so that the error does not grow with the length.
template <class Step>
CYB_INLINE double sum_long(const float* x, int64_t n, float fill, Step step) {
  double total = 0;
  for (int64_t i = 0; i < n; i += 65536)
    total += static_cast<double>(sum_row(x + i, n - i < 65536 ? n - i : 65536, fill, step));
  return total;
}

// One over the root of (sum / n + eps).
CYB_INLINE float inverse_root(double sum, int64_t n, float eps) {
  const float variance = static_cast<float>(sum / static_cast<double>(n)) + eps;
  return 1.0f / __builtin_sqrtf(variance);
}

CYB_INLINE const float* line_of(const NormArgs& a, const float* base, int64_t row) {
  return base && a.rows_per_line ? base + row / a.rows_per_line * a.line_stride : base;
}

CYB_INLINE void scale_row(const NormArgs& a, const float* x, int64_t row, float mean, float inverse) {
  const float* weight = line_of(a, a.weight, row);
  const float* bias = line_of(a, a.bias, row);
  float* y = a.y + row * a.y_stride;
  const Vec center = set1(mean), scale = set1(inverse), offset = set1(a.offset);
  for (int64_t i = 0; i < a.n; i += 16) {
    const int64_t left = a.n - i;
    Vec v = (load_first(x + i, left) - center) * scale;
    if (weight) v = v * (offset + load_first(weight + i, left));
    if (bias) v = v + load_first(bias + i, left);
    store_first(y + i, v, left);
  }
}

// The row to normalize: x, or x + skip kept in `sum` or, without one, in y.
CYB_INLINE const float* input_row(const NormArgs& a, int64_t row) {
  const float* x = a.x + row * a.x_stride;
  if (!a.skip) return x;
  const float* skip = a.skip + row * a.skip_stride;
  float* sum = a.sum ? a.sum + row * a.sum_stride : a.y + row * a.y_stride;
  for (int64_t i = 0; i < a.n; i += 16)
    store_first(sum + i, load_first(x + i, a.n - i) + load_first(skip + i, a.n - i), a.n - i);
  return sum;
}

static void rms_norm_rows(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = input_row(a, row);
    const double squares = sum_long(x, a.n, 0.0f, SquareSum{set1(0.0f)});
    scale_row(a, x, row, 0.0f, inverse_root(squares, a.n, a.eps));
  }
}

static void layer_norm_rows(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = input_row(a, row);
    const float mean = static_cast<float>(sum_long(x, a.n, 0.0f, PlainSum()) / static_cast<double>(a.n));
    const double squares = sum_long(x, a.n, mean, SquareSum{set1(mean)});
    scale_row(a, x, row, mean, inverse_root(squares, a.n, a.eps));
  }
}

static void l2_norm_rows(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const float* x = input_row(a, row);
    const float length = __builtin_sqrtf(static_cast<float>(sum_long(x, a.n, 0.0f, SquareSum{set1(0.0f)})));
    scale_row(a, x, row, 0.0f, 1.0f / (length < a.eps ? a.eps : length));
  }
}

static void group_norm_groups(const GroupNormArgs& a, int64_t begin, int64_t end) {
  const int64_t channels = a.channels / a.groups, n = channels * a.spatial;
  for (int64_t g = begin; g < end; ++g) {
    const float* x = a.x + g * n;
    float* y = a.y + g * n;
    const float mean = static_cast<float>(sum_long(x, n, 0.0f, PlainSum()) / static_cast<double>(n));
    const float inverse = inverse_root(sum_long(x, n, mean, SquareSum{set1(mean)}), n, a.eps);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t channel = g % a.groups * channels + c;
      const Vec weight = set1(a.weight ? a.weight[channel] : 1.0f),
                bias = set1(a.bias ? a.bias[channel] : 0.0f);
      const Vec center = set1(mean), scale = set1(inverse);
      for (int64_t i = 0; i < a.spatial; i += 16) {
        const int64_t at = c * a.spatial + i, left = a.spatial - i;
        store_first(y + at, (load_first(x + at, left) - center) * scale * weight + bias, left);
      }
    }
  }
}

static void channel_norm_rows(const ChannelNormArgs& a, int64_t begin, int64_t end) {
  if (a.spatial == 1) {
    for (int64_t row = begin; row < end; ++row)
      for (int64_t i = 0; i < a.channels; i += 16) {
        const int64_t at = row * a.channels + i, left = a.channels - i;
        const Vec v =
            (load_first(a.x + at, left) - load_first(a.mean + i, left)) * load_first(a.scale + i, left);
        store_first(a.y + at, v + load_first(a.bias + i, left), left);
      }
    return;
  }
  for (int64_t row = begin; row < end; ++row) {
    const int64_t channel = row % a.channels;
    const Vec mean = set1(a.mean[channel]), scale = set1(a.scale[channel]), bias = set1(a.bias[channel]);
    const float* x = a.x + row * a.spatial;
    float* y = a.y + row * a.spatial;
    for (int64_t i = 0; i < a.spatial; i += 16)
      store_first(y + i, (load_first(x + i, a.spatial - i) - mean) * scale + bias, a.spatial - i);
  }
}

constexpr NormKernels make_norm_kernels() {
  return {rms_norm_rows, layer_norm_rows, group_norm_groups, l2_norm_rows, channel_norm_rows};
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
