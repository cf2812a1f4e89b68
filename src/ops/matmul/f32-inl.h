// SPDX-License-Identifier: Apache-2.0
// f32 chains for every encoding and for f32 operands: 256 columns of some rows of W are expanded into a panel
// [256][kPanel] on the stack, tiles of kRowTile × kPanel sums run over it. Included once by each
// matmul_ISA.cc, after simd_ISA-inl.h, which gives V8 (8 floats), VI (8 × i32), VW (kWide floats) and
// kRowTile.
#pragma once

#include "ops/matmul/matmul.h"

namespace cyb {
namespace {

constexpr int kDepth = 256;  // columns of one chain
constexpr int kPanelGroups = kPanel / 8;
constexpr int64_t kRowBlock = 96;  // rows that share a panel; a multiple of every kRowTile

inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// Total += chain, for ROWS rows and a panel of VECS·kWide columns. x is read as it lies: k contiguous.
template <int ROWS, int VECS>
inline void chain_tile(int64_t depth, const float* x, int64_t ldx, const float* panel, int64_t ldp,
                       float* total) {
  VW acc[ROWS][VECS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++) acc[i][v] = vw_zero();
  for (int64_t k = 0; k < depth; k++) {
    VW w[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++) w[v] = vw_load(panel + k * ldp + v * kWide);
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++) {
      const VW a = vw_set1(x[i * ldx + k]);
#pragma GCC unroll 4
      for (int v = 0; v < VECS; v++) acc[i][v] = vw_fma(a, w[v], acc[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++) {
      float* t = total + i * kPanel + v * kWide;
      vw_store(t, vw_add(vw_load(t), acc[i][v]));
    }
}

template <int ROWS>
void chain_rows_at_most(int64_t rows, int64_t depth, const float* x, int64_t ldx, const float* panel,
                        int64_t ldp, float* total) {
  if (rows == ROWS)
    chain_tile<ROWS, kPanel / kWide>(depth, x, ldx, panel, ldp, total);
  else if constexpr (ROWS > 1)
    chain_rows_at_most<ROWS - 1>(rows, depth, x, ldx, panel, ldp, total);
}

void chain_rows(int64_t rows, int64_t depth, const float* x, int64_t ldx, const float* panel, int64_t ldp,
                float* total) {
  for (; rows >= kRowTile; rows -= kRowTile, x += kRowTile * ldx, total += kRowTile * kPanel)
    chain_tile<kRowTile, kPanel / kWide>(depth, x, ldx, panel, ldp, total);
  if (rows > 0) chain_rows_at_most<kRowTile - 1>(rows, depth, x, ldx, panel, ldp, total);
}

// Expansion of one group of 8 rows: columns [begin, begin + depth), rounded up to whole blocks, which fit the
// panel.
struct ExpandU32 {
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = data + (group * k + begin) * 32;
    for (int64_t i = 0; i < depth; i++) v8_store(out + i * kPanel, vi_to_f32(vi_load(p + 32 * i)));
  }
};

struct ExpandU16 {
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = data + (group * k + begin) * 16;
    for (int64_t i = 0; i < depth; i++) v8_store(out + i * kPanel, vi_to_f32(vi_load_i16(p + 16 * i)));
  }
};

struct ExpandQ8 {
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = data + (group * ((k + 31) / 32) + begin / 32) * 272;
    for (int64_t i = 0; i < depth; i += 32, p += 272) {
      const V8 scale = vi_to_f32(vi_load_i16(p));
      float* o = out + i * kPanel;
      for (int j = 0; j < 8; j++, o += 4 * kPanel) {
        const VI q = vi_load(p + 16 + 32 * j);
        v8_store(o, v8_mul(vi_to_f32(vi_sar<24>(vi_shl<24>(q))), scale));
        v8_store(o + kPanel, v8_mul(vi_to_f32(vi_sar<24>(vi_shl<16>(q))), scale));
        v8_store(o + 2 * kPanel, v8_mul(vi_to_f32(vi_sar<24>(vi_shl<8>(q))), scale));
        v8_store(o + 3 * kPanel, v8_mul(vi_to_f32(vi_sar<24>(q)), scale));
      }
    }
  }
};

struct ExpandQ4 {
  template <int SHIFT>
  static void put(float* out, VI q, V8 scale) {
    const VI code = vi_sub(vi_and(vi_shr<SHIFT>(q), vi_set1(15)), vi_set1(8));
    v8_store(out, v8_mul(vi_to_f32(code), scale));
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = data + (group * ((k + 31) / 32) + begin / 32) * 144;
    for (int64_t i = 0; i < depth; i += 32, p += 144) {
      const V8 scale = vi_to_f32(vi_load_i16(p));
      float* o = out + i * kPanel;
      for (int j = 0; j < 4; j++, o += 4 * kPanel) {
        const VI q = vi_load(p + 16 + 32 * j);
        put<0>(o, q, scale);
        put<4>(o + 16 * kPanel, q, scale);
        put<8>(o + kPanel, q, scale);
        put<12>(o + 17 * kPanel, q, scale);
        put<16>(o + 2 * kPanel, q, scale);
        put<20>(o + 18 * kPanel, q, scale);
        put<24>(o + 3 * kPanel, q, scale);
        put<28>(o + 19 * kPanel, q, scale);
      }
    }
  }
};

struct ExpandTernary {
  template <int COLUMN>
  static void put(float* out, VI q) {
    const VI one = vi_set1(1);
    const VI low = vi_and(vi_shr<2 * COLUMN>(q), one), high = vi_and(vi_shr<2 * COLUMN + 1>(q), one);
    v8_store(out + COLUMN * kPanel, vi_to_f32(vi_sub(low, high)));
    if constexpr (COLUMN < 15) put<COLUMN + 1>(out, q);
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = data + (group * ((k + 15) / 16) + begin / 16) * 32;
    for (int64_t i = 0; i < depth; i += 16, p += 32) put<0>(out + i * kPanel, vi_load(p));
  }
};

// v = (total · factor) · factor2 [· row_scale] [+ bias], into y: matmul.h. One row, `count` ≤ 8 columns at n.
inline void finish(const MatmulArgs& args, int64_t row, int64_t n, const float* total) {
  const WeightMatrix& w = args.w;
  float* y = args.y + row * args.ldy + n;
  if (n + 8 <= w.n && (!w.row_scale || w.row_scale_stride != 0)) {
    V8 v = v8_mul(v8_mul(v8_load(total), v8_set1(w.factor)), v8_set1(w.factor2));
    if (w.row_scale) v = v8_mul(v, v8_load(w.row_scale + n));
    if (args.bias) v = v8_add(v, v8_load(args.bias + n));
    if (args.accumulate) v = v8_add(v8_load(y), v);
    v8_store(y, v);
    return;
  }
  const int64_t count = min64(8, w.n - n);
  for (int64_t i = 0; i < count; i++) {
    float v = total[i] * w.factor * w.factor2;
    if (w.row_scale) v = v * w.row_scale[(n + i) * w.row_scale_stride];
    if (args.bias) v = v + args.bias[n + i];
    y[i] = args.accumulate ? y[i] + v : v;
  }
}

template <class Expand>
void f32_acts(const MatmulArgs& args, const MatmulRange& range) {
  alignas(64) float panel[kDepth * kPanel];
  alignas(64) float total[kRowBlock * kPanel];
  const int64_t k = args.w.k;
  for (int64_t row = range.row_begin; row < range.row_end; row += kRowBlock) {
    const int64_t rows = min64(kRowBlock, range.row_end - row);
    for (int64_t group = range.group_begin; group < range.group_end; group += kPanelGroups) {
      const int64_t groups = min64(kPanelGroups, range.group_end - group);
      for (int64_t i = 0; i < rows * kPanel; i += kWide) vw_store(total + i, vw_zero());
      for (int64_t begin = 0; begin < k; begin += kDepth) {
        const int64_t depth = min64(kDepth, k - begin);
        for (int64_t g = 0; g < kPanelGroups; g++) {
          if (g < groups) {
            Expand::run(args.w.data, k, group + g, begin, depth, panel + 8 * g);
          } else if (begin == 0) {  // columns that nobody reads, but sums of garbage may be slow
            for (int64_t i = 0; i < min64(kDepth, k); i++) v8_store(panel + i * kPanel + 8 * g, v8_zero());
          }
        }
        chain_rows(rows, depth, args.x + row * args.ldx + begin, args.ldx, panel, kPanel, total);
      }
      for (int64_t i = 0; i < rows; i++)
        for (int64_t g = 0; g < groups; g++)
          finish(args, row + i, (group + g) * 8, total + i * kPanel + 8 * g);
    }
  }
}

// Columns n … n + kPanel of b for k in [0, depth), zeros beyond `count`.
inline void dense_panel(const DenseArgs& args, const float* b, int64_t depth, int64_t count, float* panel) {
  if (args.b_n == 1 && count == kPanel) {
    for (int64_t k = 0; k < depth; k++)
      for (int v = 0; v < kPanel; v += kWide) vw_store(panel + k * kPanel + v, vw_load(b + k * args.b_k + v));
    return;
  }
  int64_t n = 0;
  if (args.b_k == 1)
    for (; n + 8 <= count; n += 8) {
      int64_t k = 0;
      for (; k + 8 <= depth; k += 8)
        transpose8(b + n * args.b_n + k, args.b_n, panel + k * kPanel + n, kPanel);
      for (; k < depth; k++)
        for (int64_t i = 0; i < 8; i++) panel[k * kPanel + n + i] = b[(n + i) * args.b_n + k];
    }
  for (; n < count; n++)
    for (int64_t k = 0; k < depth; k++) panel[k * kPanel + n] = b[n * args.b_n + k * args.b_k];
  for (int64_t k = 0; k < depth; k++)
    for (int64_t i = count; i < kPanel; i++) panel[k * kPanel + i] = 0;
}

void dense(const DenseArgs& args, int64_t batch, const MatmulRange& range) {
  alignas(64) float panel[kDepth * kPanel];
  alignas(64) float total[kRowBlock * kPanel];
  alignas(64) float packed[kRowTile * kDepth];  // rows of a whose k is not contiguous
  const int64_t i0 = batch / args.batch[1], i1 = batch % args.batch[1];
  const float* a = args.a + i0 * args.a_batch[0] + i1 * args.a_batch[1];
  const float* b = args.b + i0 * args.b_batch[0] + i1 * args.b_batch[1];
  float* y = args.y + i0 * args.y_batch[0] + i1 * args.y_batch[1];
  const int64_t n_end = min64(range.group_end * 8, args.n);
  for (int64_t row = range.row_begin; row < range.row_end; row += kRowBlock) {
    const int64_t rows = min64(kRowBlock, range.row_end - row);
    for (int64_t n = range.group_begin * 8; n < n_end; n += kPanel) {
      const int64_t count = min64(kPanel, n_end - n);
      // Few rows read b where it lies; more are worth a panel without its strides.
      const bool direct = args.b_n == 1 && count == kPanel && rows <= 2 * kRowTile;
      for (int64_t i = 0; i < rows * kPanel; i += kWide) vw_store(total + i, vw_zero());
      for (int64_t begin = 0; begin < args.k; begin += kDepth) {
        const int64_t depth = min64(kDepth, args.k - begin);
        const float* bp = b + begin * args.b_k + n * args.b_n;
        if (!direct) dense_panel(args, bp, depth, count, panel);
        const float* p = direct ? bp : panel;
        const int64_t ldp = direct ? args.b_k : kPanel;
        if (args.a_k == 1) {
          chain_rows(rows, depth, a + row * args.a_m + begin, args.a_m, p, ldp, total);
          continue;
        }
        for (int64_t i = 0; i < rows; i += kRowTile) {
          const int64_t some = min64(kRowTile, rows - i);
          for (int64_t k = 0; k < depth; k++)
            for (int64_t r = 0; r < some; r++)
              packed[r * kDepth + k] = a[(row + i + r) * args.a_m + (begin + k) * args.a_k];
          chain_rows(some, depth, packed, kDepth, p, ldp, total + i * kPanel);
        }
      }
      for (int64_t i = 0; i < rows; i++) {
        float* out = y + (row + i) * args.y_m + n;
        const float* t = total + i * kPanel;
        for (int64_t j = 0; j < count; j++) {
          float v = t[j];
          if (args.bias) v = v + args.bias[n + j];
          out[j] = args.accumulate ? out[j] + v : v;
        }
      }
    }
  }
}

}  // namespace
}  // namespace cyb
