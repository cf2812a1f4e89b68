// SPDX-License-Identifier: Apache-2.0
// f32 chains for every encoding and for f32 operands: 256 columns of some rows of W are expanded into a panel
// [256][kPanel] on the stack, tiles of kRowTile × kTileColumns sums run over it. Included once by each
// matmul_ISA.cc, after simd_ISA-inl.h, which gives V8 (8 floats), VI (8 × i32), VW (kWide floats) and
// the sizes of a tile.
#pragma once

#include "ops/matmul/chain-inl.h"
#include "ops/matmul/finish_wide-inl.h"

namespace cyb {
namespace {

template <class E>
inline void expand_blocks(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth,
                          float* out) {
  for (int64_t i = 0; i < depth; i += 32) {
    const typename E::Block block = E::block(data, k, group, begin + i);
    const int pieces = E::kHalves && depth - i <= 16 ? 4 : 8;
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      if (j == 4 && pieces == 4) break;
      V8 w[4];
      E::columns(block, j, w);
#pragma GCC unroll 4
      for (int c = 0; c < 4; c++) v8_store(out + (i + 4 * j + c) * kPanel, w[c]);
    }
  }
}

// Expansion of one group of 8 rows. run(): columns [begin, begin + depth) into a panel, rounded up to whole
// blocks, which fit it. block() and columns(): 32 columns from registers, 4j … 4j + 4 at a time. kStreams:
// groups that chain_few reads at once, enough to hide the latency of a chain's fma.
struct ExpandU32 {
  static constexpr bool kHalves = false;
  static constexpr int kStreams = 1;
  static constexpr int64_t kStep = 32;  // bytes of a column, about
  using Block = const uint8_t*;
  static const uint8_t* place(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return block(data, k, group, at);
  }
  static Block block(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return data + (group * k + at) * 32;
  }
  static void columns(Block p, int j, V8 (&w)[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) w[i] = vi_to_f32(vi_load(p + 32 * (4 * j + i)));
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = block(data, k, group, begin);
    for (int64_t i = 0; i < depth; i++) v8_store(out + i * kPanel, vi_to_f32(vi_load(p + 32 * i)));
  }
};

struct ExpandU16 {
  static constexpr bool kHalves = false;
  static constexpr int kStreams = 2;
  static constexpr int64_t kStep = 16;  // bytes of a column, about
  using Block = const uint8_t*;
  static const uint8_t* place(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return block(data, k, group, at);
  }
  static Block block(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return data + (group * k + at) * 16;
  }
  static void columns(Block p, int j, V8 (&w)[4]) {
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) w[i] = vi_to_f32(vi_load_i16(p + 16 * (4 * j + i)));
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    const uint8_t* p = block(data, k, group, begin);
    for (int64_t i = 0; i < depth; i++) v8_store(out + i * kPanel, vi_to_f32(vi_load_i16(p + 16 * i)));
  }
};

struct ScaledBlock {
  const uint8_t* codes;
  V8 scale;
};

struct ExpandQ8 {
  static constexpr bool kHalves = false;
  static constexpr int kStreams = 4;
  static constexpr int64_t kStep = 9;  // bytes of a column, about
  using Block = ScaledBlock;
  static const uint8_t* place(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return data + (group * ((k + 31) / 32) + at / 32) * 272;
  }
  static Block block(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    const uint8_t* p = place(data, k, group, at);
    return {p + 16, vi_to_f32(vi_load_i16(p))};
  }
  static void columns(const Block& b, int j, V8 (&w)[4]) {
    const VI q = vi_load(b.codes + 32 * j);
    w[0] = v8_mul(vi_to_f32(vi_sar<24>(vi_shl<24>(q))), b.scale);
    w[1] = v8_mul(vi_to_f32(vi_sar<24>(vi_shl<16>(q))), b.scale);
    w[2] = v8_mul(vi_to_f32(vi_sar<24>(vi_shl<8>(q))), b.scale);
    w[3] = v8_mul(vi_to_f32(vi_sar<24>(q)), b.scale);
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    expand_blocks<ExpandQ8>(data, k, group, begin, depth, out);
  }
};

struct ExpandQ4 {
  static constexpr bool kHalves = false;
  static constexpr int kStreams = 4;
  static constexpr int64_t kStep = 5;  // bytes of a column, about
  using Block = ScaledBlock;
  static const uint8_t* place(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return data + (group * ((k + 31) / 32) + at / 32) * 144;
  }
  static Block block(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    const uint8_t* p = place(data, k, group, at);
    return {p + 16, vi_to_f32(vi_load_i16(p))};
  }
  static V8 value(VI nibble, V8 scale) {
    return v8_mul(vi_to_f32(vi_sub(vi_and(nibble, vi_set1(15)), vi_set1(8))), scale);
  }
  static void columns(const Block& b, int j, V8 (&w)[4]) {
    VI q = vi_load(b.codes + 32 * (j % 4));
    if (j >= 4) q = vi_shr<4>(q);
    w[0] = value(q, b.scale);
    w[1] = value(vi_shr<8>(q), b.scale);
    w[2] = value(vi_shr<16>(q), b.scale);
    w[3] = value(vi_shr<24>(q), b.scale);
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    expand_blocks<ExpandQ4>(data, k, group, begin, depth, out);
  }
};

struct ExpandTernary {
  static constexpr bool kHalves = true;  // a block may lack its second half
  static constexpr int kStreams = 4;
  static constexpr int64_t kStep = 2;  // bytes of a column, about
  using Block = const uint8_t*;
  static const uint8_t* place(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return block(data, k, group, at);
  }
  static Block block(const uint8_t* data, int64_t k, int64_t group, int64_t at) {
    return data + (group * ((k + 15) / 16) + at / 16) * 32;
  }
  static V8 value(VI code) {
    const VI one = vi_set1(1);
    return vi_to_f32(vi_sub(vi_and(code, one), vi_and(vi_shr<1>(code), one)));
  }
  static void columns(Block p, int j, V8 (&w)[4]) {
    VI q = vi_load(p + 32 * (j / 4));
    q = j % 4 == 0 ? q : j % 4 == 1 ? vi_shr<8>(q) : j % 4 == 2 ? vi_shr<16>(q) : vi_shr<24>(q);
    w[0] = value(q);
    w[1] = value(vi_shr<2>(q));
    w[2] = value(vi_shr<4>(q));
    w[3] = value(vi_shr<6>(q));
  }
  static void run(const uint8_t* data, int64_t k, int64_t group, int64_t begin, int64_t depth, float* out) {
    expand_blocks<ExpandTernary>(data, k, group, begin, depth, out);
  }
};

// finish() for a panel's columns n … n + columns, row by row, so that whole lines are written at once.
__attribute__((noinline)) void finish_panel(const MatmulArgs& args, int64_t row, int64_t rows, int64_t n,
                                            int64_t columns, const float* total) {
  const WeightMatrix& w = args.w;
  const int64_t whole = w.row_scale ? 0 : min64(columns, w.n - n) / 8 * 8;
  const Finish8 last(args);
  const FinishWide wide(args);
  for (int64_t i = 0; i < rows; i++) {
    float* y = args.y + (row + i) * args.ldy + n;
    const float* t = total + i * kPanel;
    int64_t j = 0;
    for (; j + kWide <= whole; j += kWide) wide(vw_load(t + j), n + j, y + j);
    for (; j < whole; j += 8) last(v8_load(t + j), n + j, y + j);
  }
  for (int64_t j = whole; j < columns; j += 8) finish(args, row, rows, n + j, total + j, kPanel);
}

// Few rows: `count` ≤ G groups straight from memory, one chain for each row of each group, expanded four
// columns at a time. With fewer than G groups the last one is computed again.
template <class E, int G, int ROWS>
void chain_few(const MatmulArgs& args, int64_t row, int64_t group, int64_t count) {
  const int64_t k = args.w.k, ldx = args.ldx, ahead = fetch_ahead();
  const float* x = args.x + row * ldx;
  V8 total[G][ROWS];
  for (int g = 0; g < G; g++)
    for (int m = 0; m < ROWS; m++) total[g][m] = v8_zero();
  for (int64_t begin = 0; begin < k; begin += kDepth) {
    const int64_t end = min64(begin + kDepth, k);
    V8 acc[G][ROWS];
#pragma GCC unroll 4
    for (int g = 0; g < G; g++)
#pragma GCC unroll 4
      for (int m = 0; m < ROWS; m++) acc[g][m] = v8_zero();
    int64_t at = begin;
    for (; at + 32 <= end; at += 32) {
      typename E::Block block[G];
#pragma GCC unroll 4
      for (int g = 0; g < G; g++) {
        block[g] = E::block(args.w.data, k, group + min64(g, count - 1), at);
        fetch_weights<32 * E::kStep>(E::place(args.w.data, k, group + min64(g, count - 1), at), ahead);
      }
#pragma GCC unroll 8
      for (int j = 0; j < 8; j++) {
        V8 w[G][4];
#pragma GCC unroll 4
        for (int g = 0; g < G; g++) E::columns(block[g], j, w[g]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
#pragma GCC unroll 4
          for (int m = 0; m < ROWS; m++) {
            const V8 a = v8_set1(x[m * ldx + at + 4 * j + i]);
#pragma GCC unroll 4
            for (int g = 0; g < G; g++) acc[g][m] = v8_fma(a, w[g][i], acc[g][m]);
          }
      }
    }
    if (at < end) {
      alignas(64) float tail[32 * kPanel];
      for (int g = 0; g < G; g++) {
        E::run(args.w.data, k, group + min64(g, count - 1), at, end - at, tail);
        for (int64_t i = 0; i < end - at; i++)
          for (int m = 0; m < ROWS; m++)
            acc[g][m] = v8_fma(v8_set1(x[m * ldx + at + i]), v8_load(tail + i * kPanel), acc[g][m]);
      }
    }
    for (int g = 0; g < G; g++)
      for (int m = 0; m < ROWS; m++) total[g][m] = v8_add(total[g][m], acc[g][m]);
  }
  alignas(32) float out[ROWS * 8];
  for (int g = 0; g < count; g++) {
    for (int m = 0; m < ROWS; m++) v8_store(out + 8 * m, total[g][m]);
    finish(args, row, ROWS, (group + g) * 8, out, 8);
  }
}

template <class E, int ROWS>
void chains_few(const MatmulArgs& args, const MatmulRange& range) {
  constexpr int kGroups = ROWS == 1 ? E::kStreams : E::kStreams > 2 ? 2 : E::kStreams;
  for (int64_t group = range.group_begin; group < range.group_end; group += kGroups)
    chain_few<E, kGroups, ROWS>(args, range.row_begin, group, min64(kGroups, range.group_end - group));
}

template <class Expand>
void f32_acts(const MatmulArgs& args, const MatmulRange& range) {
  switch (range.row_end - range.row_begin) {
    case 1:
      return chains_few<Expand, 1>(args, range);
    case 2:
      return chains_few<Expand, 2>(args, range);
    case 3:
      return chains_few<Expand, 3>(args, range);
  }
  alignas(64) float panel[kDepth * kPanel];
  alignas(64) float total[kRowBlock * kPanel];
  const int64_t k = args.w.k;
  for (int64_t row = range.row_begin; row < range.row_end; row += kRowBlock) {
    const int64_t rows = min64(kRowBlock, range.row_end - row);
    for (int64_t group = range.group_begin; group < range.group_end; group += kPanelGroups) {
      const int64_t groups = min64(kPanelGroups, range.group_end - group);
      const int64_t columns = panel_columns(groups * 8);
      for (int64_t begin = 0; begin < k || begin == 0; begin += kDepth) {
        const int64_t depth = min64(kDepth, k - begin);
        // Whole tiles of columns are expanded by their first tile of rows.
        const int64_t opened = rows >= kRowTile && depth % 32 == 0 ? groups / kTileGroups * kTileGroups : 0;
        const float* xb = args.x + row * args.ldx + begin;
        Ahead ahead[kPanelGroups];
        const bool more = begin + kDepth < k;
        for (int64_t g = opened; g < columns / 8; g++) {
          if (g < groups) {
            Expand::run(args.w.data, k, group + g, begin, depth, panel + 8 * g);
          } else if (begin == 0) {  // columns that nobody reads, but sums of garbage may be slow
            for (int64_t i = 0; i < min64(kDepth, k); i++) v8_store(panel + i * kPanel + 8 * g, v8_zero());
          }
        }
        for (int64_t g = 0; g < columns / 8; g++) {
          const int64_t next = min64(more ? group + g : group + kPanelGroups + g, range.group_end - 1);
          ahead[g] = {Expand::place(args.w.data, k, next, more ? begin + kDepth : 0), Expand::kStep};
        }
        const auto open = [&](int64_t column, float* sums, Ahead next) {
          if (column / 8 + kTileGroups > opened) return false;
          chain_expand<Expand>(args.w.data, k, group + column / 8, begin, depth, xb, args.ldx, panel + column,
                               sums, begin == 0, next);
          return true;
        };
        chain_rows(rows, columns, depth, xb, args.ldx, panel, kPanel, total, begin == 0, ahead,
                   static_cast<int>(columns / 8), open,
                   [&](int64_t at, int64_t some, int64_t column, int64_t width) {
                     if (!more)
                       finish_panel(args, row + at, some, group * 8 + column,
                                    min64(width, groups * 8 - column), total + at * kPanel + column);
                   });
      }
    }
  }
}

constexpr auto kNotOpened = [](int64_t, float*, Ahead) { return false; };

// Columns n … n + count of b for k in [0, depth), zeros beyond them up to `columns`.
inline void dense_panel(const DenseArgs& args, const float* b, int64_t depth, int64_t count, int64_t columns,
                        float* panel) {
  if (args.b_n == 1 && count == columns) {
    for (int64_t k = 0; k < depth; k++)
      for (int64_t v = 0; v < columns; v += kWide)
        vw_store(panel + k * kPanel + v, vw_load(b + k * args.b_k + v));
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
    for (int64_t i = count; i < columns; i++) panel[k * kPanel + i] = 0;
}

// What is left to do for `rows` rows of y and their totals, kPanel apart.
__attribute__((noinline)) void dense_finish(const DenseArgs& args, float* y, int64_t rows, int64_t n,
                                            int64_t count, const float* total) {
  const float* bias = args.bias ? args.bias + n : nullptr;
  for (int64_t i = 0; i < rows; i++, y += args.y_m, total += kPanel) {
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
      V8 v = v8_load(total + j);
      if (bias) v = v8_add(v, v8_load(bias + j));
      if (args.accumulate) v = v8_add(v8_load(y + j), v);
      v8_store(y + j, v);
    }
    for (; j < count; j++) {
      float v = total[j];
      if (bias) v = v + bias[j];
      y[j] = args.accumulate ? y[j] + v : v;
    }
  }
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
      const int64_t count = min64(kPanel, n_end - n), columns = panel_columns(count);
      // Few rows read b where it lies; more are worth a panel without its strides.
      const bool direct = args.b_n == 1 && count == columns && rows <= 2 * kRowTile;
      for (int64_t begin = 0; begin < args.k || begin == 0; begin += kDepth) {
        const int64_t depth = min64(kDepth, args.k - begin);
        const float* bp = b + begin * args.b_k + n * args.b_n;
        if (!direct) dense_panel(args, bp, depth, count, columns, panel);
        const float* p = direct ? bp : panel;
        const int64_t ldp = direct ? args.b_k : kPanel;
        const bool more = begin + kDepth < args.k;
        const auto done = [&](int64_t at, int64_t some, int64_t column, int64_t width) {
          if (!more)
            dense_finish(args, y + (row + at) * args.y_m + n + column, some, n + column,
                         min64(width, count - column), total + at * kPanel + column);
        };
        if (args.a_k == 1) {
          // The lines of the next panel, where its rows are long; the processor follows columns by itself.
          Ahead ahead[kPanel / 16 + 1];
          int ahead_count = 0;
          const bool next = more || n + kPanel < n_end;
          if (args.b_n == 1 && next && !direct) {
            const float* from = more ? bp + kDepth * args.b_k : b + (n + kPanel);
            const int64_t reach = more ? count : min64(kPanel, n_end - n - kPanel);
            for (int64_t j = 0; j < reach; j += 16) ahead[ahead_count++] = {from + j, args.b_k * 4};
          }
          chain_rows(rows, columns, depth, a + row * args.a_m + begin, args.a_m, p, ldp, total, begin == 0,
                     ahead, ahead_count, kNotOpened, done);
          continue;
        }
        for (int64_t i = 0; i < rows; i += kRowTile) {
          const int64_t some = min64(kRowTile, rows - i);
          for (int64_t k = 0; k < depth; k++)
            for (int64_t r = 0; r < some; r++)
              packed[r * kDepth + k] = a[(row + i + r) * args.a_m + (begin + k) * args.a_k];
          chain_rows(some, columns, depth, packed, kDepth, p, ldp, total + i * kPanel, begin == 0, nullptr, 0,
                     kNotOpened, [&](int64_t at, int64_t part, int64_t column, int64_t width) {
                       done(i + at, part, column, width);
                     });
        }
      }
    }
  }
}

}  // namespace
}  // namespace cyb
