// SPDX-License-Identifier: Apache-2.0
// The plain kernels: the arithmetic of matmul.h written as it reads, for machines without vectors and for
// tests.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/matmul/layout.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

void quantize_row(const float* x, int64_t k, Q8Block* out) {
  for (int64_t begin = 0; begin < k; begin += 32, out++) {
    const int count = static_cast<int>(std::min<int64_t>(32, k - begin));
    // As integers the magnitudes order like the values, with infinity and NaN on top.
    uint32_t top = 0;
    for (int i = 0; i < count; i++) top = std::max(top, std::bit_cast<uint32_t>(x[begin + i]) & 0x7fffffffu);
    *out = Q8Block{};
    if (top >= 0x7f800000u) {
      out->scale = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const float max = std::bit_cast<float>(top);
    if (max < 0x1p-100f) continue;
    out->scale = max / 127.0f;
    const float inverse = 127.0f / max;
    int32_t sum = 0;
    for (int i = 0; i < count; i++) {
      const int32_t q = static_cast<int32_t>(std::lrintf(x[begin + i] * inverse));
      out->q[i] = static_cast<int8_t>(q);
      sum += q;
    }
    out->neg1 = -sum;
    out->neg8 = -8 * sum;
    out->neg128 = -128 * sum;
  }
}

void store(const MatmulArgs& args, int64_t row, int64_t n, float total) {
  const WeightMatrix& w = args.w;
  float v = total * w.factor * w.factor2;
  if (w.row_scale) v = v * w.row_scale[n * w.row_scale_stride];
  if (args.bias) v = v + args.bias[n];
  const int64_t at = row * args.ldy + n;
  if (args.residual) v = args.residual[at] + v;
  args.y[at] = v;
}

void q8_acts(const MatmulArgs& args, const MatmulRange& range) {
  const WeightMatrix& w = args.w;
  const int64_t blocks = blocks_of(w.k), n_end = std::min(range.group_end * 8, w.n);
  for (int64_t n = range.group_begin * 8; n < n_end; n++)
    for (int64_t row = range.row_begin; row < range.row_end; row++) {
      float acc = 0;
      for (int64_t b = 0; b < blocks; b++) {
        const Q8Block& x = args.xq[row * args.ldxq + b];
        int32_t codes[32], scale = 1;
        if (w.encoding == Encoding::ternary) {
          for (int64_t i = 0; i < 32; i++) codes[i] = 32 * b + i < w.k ? ternary_code(w, n, 32 * b + i) : 0;
        } else {
          scale = block_codes(w, n, b, codes);
        }
        int32_t d = 0;
        for (int i = 0; i < 32; i++) d += codes[i] * x.q[i];
        acc = std::fma(static_cast<float>(d) * x.scale, static_cast<float>(scale), acc);
      }
      store(args, row, n, acc);
    }
}

void f32_acts(const MatmulArgs& args, const MatmulRange& range) {
  const WeightMatrix& w = args.w;
  const int64_t n_end = std::min(range.group_end * 8, w.n);
  for (int64_t n = range.group_begin * 8; n < n_end; n++)
    for (int64_t row = range.row_begin; row < range.row_end; row++) {
      const float* x = args.x + row * args.ldx;
      float total = 0;
      for (int64_t begin = 0; begin < w.k; begin += 256) {
        const int64_t end = std::min(begin + 256, w.k);
        int32_t integers[256];
        row_integers(w, n, begin, end, integers);
        float acc = 0;
        for (int64_t k = begin; k < end; k++)
          acc = std::fma(x[k], static_cast<float>(integers[k - begin]), acc);
        total = total + acc;
      }
      store(args, row, n, total);
    }
}

void dense(const DenseArgs& args, int64_t batch, const MatmulRange& range) {
  const int64_t i0 = batch / args.batch[1], i1 = batch % args.batch[1];
  const float* a = args.a + i0 * args.a_batch[0] + i1 * args.a_batch[1];
  const float* b = args.b + i0 * args.b_batch[0] + i1 * args.b_batch[1];
  float* y = args.y + i0 * args.y_batch[0] + i1 * args.y_batch[1];
  const int64_t n_end = std::min(range.group_end * 8, args.n);
  for (int64_t row = range.row_begin; row < range.row_end; row++)
    for (int64_t n = range.group_begin * 8; n < n_end; n++) {
      float total = 0;
      for (int64_t begin = 0; begin < args.k; begin += 256) {
        float acc = 0;
        for (int64_t k = begin; k < std::min(begin + 256, args.k); k++)
          acc = std::fma(a[row * args.a_m + k * args.a_k], b[k * args.b_k + n * args.b_n], acc);
        total = total + acc;
      }
      float v = total;
      if (args.bias) v = v + args.bias[n];
      float& out = y[row * args.y_m + n];
      out = args.accumulate ? out + v : v;
    }
}

}  // namespace

const MatmulKernels matmul_kernels_scalar = {Isa::scalar,
                                             quantize_row,
                                             {nullptr, nullptr, q8_acts, q8_acts, q8_acts},
                                             {f32_acts, f32_acts, f32_acts, f32_acts, f32_acts},
                                             dense};

}  // namespace cyb
