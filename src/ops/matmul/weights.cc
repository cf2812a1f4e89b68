// SPDX-License-Identifier: Apache-2.0
// Encoded matrices outside of products: sizes, packing into tiles, look-up of one row.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "ops/matmul/layout.h"

namespace cyb {

size_t weight_bytes(Encoding encoding, int64_t n, int64_t k, bool tiled) {
  const size_t rows = static_cast<size_t>(tiled ? round_up<int64_t>(n, 8) : n),
               columns = static_cast<size_t>(k);
  const size_t blocks = ceil_div<size_t>(columns, 32);
  switch (encoding) {
    case Encoding::u32:
      return rows * columns * 4;
    case Encoding::u16:
      return rows * columns * 2;
    case Encoding::q8:
      return rows * blocks * 34;
    case Encoding::q4:
      return rows * blocks * 18;
    case Encoding::ternary:
      return rows * (tiled ? ceil_div<size_t>(columns, 16) * 4 : ceil_div<size_t>(columns, 4));
  }
  return 0;
}

void pack_tiles(const WeightMatrix& w, uint8_t* out, int64_t group_begin, int64_t group_end) {
  const int64_t blocks = blocks_of(w.k), row_bytes = (w.k + 3) / 4, units = (w.k + 15) / 16;
  for (int64_t g = group_begin; g < group_end; g++)
    for (int64_t r = 0; r < 8; r++) {
      const int64_t n = 8 * g + r;
      const bool real = n < w.n;
      switch (w.encoding) {
        case Encoding::u32:
        case Encoding::u16: {
          const int64_t bytes = w.encoding == Encoding::u32 ? 4 : 2;
          for (int64_t k = 0; k < w.k; k++) {
            uint8_t* to = out + ((g * w.k + k) * 8 + r) * bytes;
            if (real)
              std::memcpy(to, w.data + (n * w.k + k) * bytes, static_cast<size_t>(bytes));
            else
              std::memset(to, 0, static_cast<size_t>(bytes));
          }
          break;
        }
        case Encoding::q8:
        case Encoding::q4: {
          const int64_t bytes = w.encoding == Encoding::q8 ? 32 : 16;
          const uint8_t zero = w.encoding == Encoding::q8 ? 0 : 0x88;
          for (int64_t b = 0; b < blocks; b++) {
            uint8_t* to = out + (g * blocks + b) * 8 * (bytes + 2);
            const uint8_t* from = w.data + (n * blocks + b) * (bytes + 2);
            if (real)
              std::memcpy(to + 2 * r, from, 2);
            else
              std::memset(to + 2 * r, 0, 2);
            for (int64_t j = 0; j < bytes / 4; j++)
              if (real)
                std::memcpy(to + 16 + 32 * j + 4 * r, from + 2 + 4 * j, 4);
              else
                std::memset(to + 16 + 32 * j + 4 * r, zero, 4);
          }
          break;
        }
        case Encoding::ternary:
          for (int64_t u = 0; u < units; u++) {
            uint8_t* to = out + (g * units + u) * 32 + 4 * r;
            std::memset(to, 0, 4);
            if (real)
              std::memcpy(to, w.data + n * row_bytes + 4 * u,
                          static_cast<size_t>(std::min<int64_t>(4, row_bytes - 4 * u)));
          }
          break;
      }
    }
}

void gather_row(const WeightMatrix& w, int64_t row, float* out) {
  const double unit = std::ldexp(1.0, -w.frac_bits);
  const double divisor = w.encoding == Encoding::q8 ? 127.0 : w.encoding == Encoding::q4 ? 8.0 : 1.0;
  int32_t integers[256];
  for (int64_t begin = 0; begin < w.k; begin += 256) {
    const int64_t end = std::min(begin + 256, w.k);
    row_integers(w, row, begin, end, integers);
    for (int64_t k = begin; k < end; k++) out[k] = static_cast<float>(integers[k - begin] / divisor * unit);
  }
  if (w.row_scale)
    for (int64_t k = 0; k < w.k; k++) out[k] = out[k] * w.row_scale[row * w.row_scale_stride];
}

void matmul_reference(const MatmulArgs& args, double* y, double* bound) {
  const WeightMatrix& w = args.w;
  const double divisor = w.encoding == Encoding::q8 ? 127.0 : w.encoding == Encoding::q4 ? 8.0 : 1.0;
  for (int64_t n = 0; n < w.n; n++) {
    const double row_scale = w.row_scale ? w.row_scale[n * w.row_scale_stride] : 1.0;
    for (int64_t m = 0; m < args.m; m++) {
      double sum = 0, size = 0;
      int32_t integers[32];
      for (int64_t k = 0; k < w.k; k++) {
        if (k % 32 == 0) row_integers(w, n, k, std::min(k + 32, w.k), integers);
        double x;
        if (args.xq) {
          const Q8Block& block = args.xq[m * args.ldxq + k / 32];
          x = static_cast<double>(block.scale) * block.q[k % 32];
        } else {
          x = args.x[m * args.ldx + k];
        }
        const double term = x * (std::ldexp(integers[k % 32], -w.frac_bits) / divisor * row_scale);
        sum += term;
        size += std::fabs(term);
      }
      const double bias = args.bias ? args.bias[n] : 0.0,
                   residual = args.residual ? args.residual[m * args.ldy + n] : 0.0;
      y[m * w.n + n] = residual + (sum + bias);
      if (bound) bound[m * w.n + n] = size + std::fabs(bias) + std::fabs(residual);
    }
  }
}

void dense_reference(const DenseArgs& args, double* y, double* bound) {
  for (int64_t i0 = 0; i0 < args.batch[0]; i0++)
    for (int64_t i1 = 0; i1 < args.batch[1]; i1++) {
      const float* a = args.a + i0 * args.a_batch[0] + i1 * args.a_batch[1];
      const float* b = args.b + i0 * args.b_batch[0] + i1 * args.b_batch[1];
      const float* before = args.y + i0 * args.y_batch[0] + i1 * args.y_batch[1];
      for (int64_t m = 0; m < args.m; m++)
        for (int64_t n = 0; n < args.n; n++) {
          double sum = 0, size = 0;
          for (int64_t k = 0; k < args.k; k++) {
            const double term =
                static_cast<double>(a[m * args.a_m + k * args.a_k]) * b[k * args.b_k + n * args.b_n];
            sum += term;
            size += std::fabs(term);
          }
          const double bias = args.bias ? args.bias[n] : 0.0,
                       old = args.accumulate ? before[m * args.y_m + n] : 0.0;
          *y++ = old + (sum + bias);
          if (bound) *bound++ = size + std::fabs(bias) + std::fabs(old);
        }
    }
}

}  // namespace cyb
