// SPDX-License-Identifier: Apache-2.0
// f32 chains for every encoding and for f32 operands: 256 columns of some rows of W are expanded into a panel
// [256][kPanel] on the stack, tiles of kRowTile × kPanel sums run over it. Included once by each
// matmul_ISA.cc, after simd_ISA-inl.h, which gives V8 (8 floats), VI (8 × i32), VW (kWide floats) and
// kRowTile.
#pragma once

#include <array>
#include <utility>

#include "ops/matmul/finish-inl.h"
#include "ops/matmul/matmul.h"

namespace cyb {
namespace {

constexpr int kDepth = 256;  // columns of one chain
constexpr int kPanelGroups = kPanel / 8;
constexpr int64_t kRowBlock = kPanelRows;  // rows that share a panel

// Weights that are needed next, brought nearer while sums run: `step` bytes for each column.
struct Ahead {
  const uint8_t* at = nullptr;
  int64_t step = 0;
};

// Total += chain, for ROWS rows and a panel of VECS·kWide columns. x is read as it lies: k contiguous.
template <int ROWS, int VECS, bool AHEAD>
void chain_tile(int64_t depth, const float* x, int64_t ldx, const float* panel, int64_t ldp, float* total,
                Ahead ahead) {
  VW acc[ROWS][VECS];
#pragma GCC unroll 16
  for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++) acc[i][v] = vw_zero();
  for (int64_t k = 0; k < depth; k++) {
    VW w[VECS];
#pragma GCC unroll 4
    for (int v = 0; v < VECS; v++) w[v] = vw_load(panel + k * ldp + v * kWide);
    if (AHEAD) __builtin_prefetch(ahead.at + k * ahead.step, 0, 2);
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

using ChainTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, Ahead);
template <bool AHEAD, int... ROWS>
constexpr std::array<ChainTile, sizeof...(ROWS)> chain_tiles(std::integer_sequence<int, ROWS...>) {
  return {chain_tile<ROWS + 1, kPanel / kWide, AHEAD>...};
}
constexpr auto kChainTiles = chain_tiles<false>(std::make_integer_sequence<int, kRowTile>());
constexpr auto kChainTilesAhead = chain_tiles<true>(std::make_integer_sequence<int, kRowTile>());

// Any number of rows, in as few tiles as hold them, of nearly the same height: a low last one would wait for
// its few chains. Tile t brings group t of the panel that is next nearer.
void chain_rows(int64_t rows, int64_t depth, const float* x, int64_t ldx, const float* panel, int64_t ldp,
                float* total, const Ahead* ahead = nullptr) {
  int64_t tiles = (rows + kRowTile - 1) / kRowTile;
  for (int t = 0; tiles > 0; tiles--, t++) {
    const int64_t some = (rows + tiles - 1) / tiles;
    if (ahead && t < kPanelGroups)
      kChainTilesAhead[static_cast<size_t>(some - 1)](depth, x, ldx, panel, ldp, total, ahead[t]);
    else
      kChainTiles[static_cast<size_t>(some - 1)](depth, x, ldx, panel, ldp, total, {});
    rows -= some, x += some * ldx, total += some * kPanel;
  }
}

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

// Few rows: `count` ≤ G groups straight from memory, one chain for each row of each group, expanded four
// columns at a time. With fewer than G groups the last one is computed again.
template <class E, int G, int ROWS>
void chain_few(const MatmulArgs& args, int64_t row, int64_t group, int64_t count) {
  const int64_t k = args.w.k, ldx = args.ldx;
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
      for (int g = 0; g < G; g++) block[g] = E::block(args.w.data, k, group + min64(g, count - 1), at);
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
        Ahead ahead[kPanelGroups];
        for (int64_t g = 0; g < kPanelGroups; g++) {
          const bool more = begin + kDepth < k;
          const int64_t next = min64(more ? group + g : group + kPanelGroups + g, range.group_end - 1);
          ahead[g] = {Expand::place(args.w.data, k, next, more ? begin + kDepth : 0), Expand::kStep};
        }
        chain_rows(rows, depth, args.x + row * args.ldx + begin, args.ldx, panel, kPanel, total, ahead);
      }
      for (int64_t g = 0; g < groups; g++) finish(args, row, rows, (group + g) * 8, total + 8 * g, kPanel);
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
