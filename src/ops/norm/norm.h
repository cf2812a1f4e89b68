// SPDX-License-Identifier: Apache-2.0
// Normalizations of rows of f32 on the CPU. Sums run over 64 interleaved lanes in a fixed order, so that
// results have the same bits for any cut of the rows and on every instruction set.
#pragma once

#include <cstdint>

namespace cyb {

enum class Isa;

struct NormArgs {
  int64_t rows = 0;
  int64_t n = 0;  // elements of a row
  const float* x = nullptr;
  int64_t x_stride = 0;  // between rows
  float* y = nullptr;    // may be x
  int64_t y_stride = 0;
  float eps = 0;
  // y = normalized · (offset + weight) + bias; null: without. Row r uses line r / rows_per_line of both,
  // lines line_stride apart; rows_per_line 0: all rows use the first. (AdaLN: weight = scale, bias = shift,
  // offset 1.)
  const float* weight = nullptr;
  const float* bias = nullptr;
  float offset = 0;
  int64_t rows_per_line = 0;
  int64_t line_stride = 0;
  // Where `skip` is given, x + skip is normalized, and written to `sum` where that is given.
  const float* skip = nullptr;
  int64_t skip_stride = 0;
  float* sum = nullptr;
  int64_t sum_stride = 0;
};

// Groups of channels of [N, C, spatial]: one mean and variance for each group of each batch row.
struct GroupNormArgs {
  int64_t batch = 0, channels = 0, groups = 0, spatial = 0;
  const float* x = nullptr;
  float* y = nullptr;
  float eps = 0;
  const float* weight = nullptr;  // [channels]
  const float* bias = nullptr;
};

// y = (x − mean) · scale + bias for each channel of [N, C, spatial].
struct ChannelNormArgs {
  int64_t channels = 0, spatial = 0;
  const float* x = nullptr;
  float* y = nullptr;
  const float *mean = nullptr, *scale = nullptr, *bias = nullptr;  // [channels]
};

struct NormKernels {
  void (*rms_norm)(const NormArgs&, int64_t row_begin, int64_t row_end);    // ε inside the root
  void (*layer_norm)(const NormArgs&, int64_t row_begin, int64_t row_end);  // biased variance
  void (*group_norm)(const GroupNormArgs&, int64_t begin, int64_t end);     // groups [0, batch·groups)
  void (*l2_norm)(const NormArgs&, int64_t row_begin, int64_t row_end);     // x / max(|x|, eps)
  // Rows of `spatial` elements [0, N·C); with one position rows of `channels` elements [0, N).
  void (*channel_norm)(const ChannelNormArgs&, int64_t row_begin, int64_t row_end);
};

const NormKernels& norm_kernels(Isa isa);

}  // namespace cyb
