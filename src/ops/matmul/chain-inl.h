// SPDX-License-Identifier: Apache-2.0
// The inner loop of f32 products: tiles of kRowTile × kTileColumns sums, one fma chain each over at most
// kDepth columns of x and of a panel. Included by f32-inl.h; the names of vectors are those of simd_ISA-inl.h
// and matmul_ISA.cc.
#pragma once

#include <array>
#include <utility>

#include "ops/matmul/finish-inl.h"  // min64
#include "ops/matmul/matmul.h"

namespace cyb {
namespace {

constexpr int kDepth = 256;  // columns of one chain
constexpr int kPanelGroups = kPanel / 8, kTileGroups = kTileColumns / 8;
constexpr int64_t kRowBlock = kPanelRows;               // rows that share a panel
constexpr int kVectorStep = kWide < 8 ? 8 / kWide : 1;  // panels are cut at whole groups of 8 columns

// What is needed next, brought nearer while sums run: one place for each column.
struct Ahead {
  const void* at;
  int64_t step;  // bytes
};

// The chains of ROWS rows of x and VECS·kWide columns of a panel; FETCH brings what comes next nearer. x is
// read as it lies. Rows are addressed in threes from pointers that move: with one pointer a row the registers
// do not suffice, and the loop runs at 94 % of its speed.
template <int ROWS, int VECS, bool FETCH>
struct Chains {
  static constexpr int kBases = (ROWS + 2) / 3;
  VW acc[ROWS][VECS];
  const float* base[kBases];
  int64_t ldx;
  const char* fetch;
  int64_t fetch_step;

  __attribute__((always_inline)) Chains(const float* x, int64_t ld, Ahead ahead)
      : ldx(ld), fetch(static_cast<const char*>(ahead.at)), fetch_step(ahead.step) {
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
      for (int v = 0; v < VECS; v++) acc[i][v] = vw_zero();
#pragma GCC unroll 4
    for (int b = 0; b < kBases; b++) base[b] = x + 3 * b * ldx;
  }
  // The next COUNT columns of x, with those of the panel, ldp apart. Several at a time, and every third row
  // broadcast by the fma itself, because many processors take in hardly more instructions than two fma a
  // cycle leave room for.
  template <int COUNT>
  __attribute__((always_inline)) void steps(const float* panel, int64_t ldp) {
#pragma GCC unroll 4
    for (int c = 0; c < COUNT; c++, panel += ldp) {
      VW w[VECS];
#pragma GCC unroll 4
      for (int v = 0; v < VECS; v++) w[v] = vw_load(panel + v * kWide);
      if (FETCH) {
        __builtin_prefetch(fetch, 0, 2);
        fetch += fetch_step;
      }
#pragma GCC unroll 16
      for (int i = 0; i < ROWS; i++) {
        const float* x = base[i / 3] + i % 3 * ldx + c;
        if (i % 3 == 0) {
#pragma GCC unroll 4
          for (int v = 0; v < VECS; v++) vw_fma_broadcast(acc[i][v], w[v], x);
          continue;
        }
        const VW a = vw_set1(*x);
#pragma GCC unroll 4
        for (int v = 0; v < VECS; v++) acc[i][v] = vw_fma(a, w[v], acc[i][v]);
      }
    }
#pragma GCC unroll 4
    for (int b = 0; b < kBases; b++) {
      base[b] += COUNT;
      asm("" : "+r"(base[b]));
    }
  }
  // Totals (kPanel apart) = [totals +] chains.
  __attribute__((always_inline)) void add_to(float* total, bool first) const {
#pragma GCC unroll 16
    for (int i = 0; i < ROWS; i++)
#pragma GCC unroll 4
      for (int v = 0; v < VECS; v++) {
        float* t = total + i * kPanel + v * kWide;
        vw_store(t, vw_add(first ? vw_zero() : vw_load(t), acc[i][v]));
      }
  }
};

template <int ROWS, int VECS, bool FETCH>
void chain_tile(int64_t depth, const float* x, int64_t ldx, const float* panel, int64_t ldp, float* total,
                bool first, Ahead ahead) {
  Chains<ROWS, VECS, FETCH> chains(x, ldx, ahead);
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4, panel += 4 * ldp) chains.template steps<4>(panel, ldp);
  for (; k < depth; k++, panel += ldp) chains.template steps<1>(panel, ldp);
  chains.add_to(total, first);
}

using ChainTile = void (*)(int64_t, const float*, int64_t, const float*, int64_t, float*, bool, Ahead);
template <int VECS, bool FETCH, int... ROWS>
constexpr std::array<ChainTile, sizeof...(ROWS)> chain_tiles(std::integer_sequence<int, ROWS...>) {
  return {chain_tile<ROWS + 1, VECS, FETCH>...};
}
template <bool FETCH, int... STEP>
constexpr std::array<std::array<ChainTile, kRowTile>, sizeof...(STEP)> chain_tables(
    std::integer_sequence<int, STEP...>) {
  return {chain_tiles<kVectorStep*(STEP + 1), FETCH>(std::make_integer_sequence<int, kRowTile>())...};
}
// By columns, in steps of at least 8, and by rows.
using ChainSteps = std::make_integer_sequence<int, kPanel / kWide / kVectorStep>;
constexpr auto kFetchingTiles = chain_tables<true>(ChainSteps());
constexpr auto kChainTiles = chain_tables<false>(ChainSteps());
constexpr int64_t kColumnStep = int64_t{kWide} * kVectorStep;
constexpr int64_t panel_columns(int64_t columns) {
  return (columns + kColumnStep - 1) / kColumnStep * kColumnStep;
}

// The first tile of a panel, of kRowTile rows and kTileColumns columns, expands it as it goes, 32 columns
// ahead of its sums: the units that convert and store are idle there, while expanding first costs 15 % of a
// product of 50 rows. E as in f32-inl.h; `depth` is a multiple of 32.
template <class E>
__attribute__((noinline)) void chain_expand(const uint8_t* data, int64_t k, int64_t group, int64_t begin,
                                            int64_t depth, const float* x, int64_t ldx, float* panel,
                                            float* total, bool first, Ahead ahead) {
  const auto piece = [&](int64_t at, int j) __attribute__((always_inline)) {
    float* out = panel + (at + 4 * j) * kPanel;
#pragma GCC unroll 8
    for (int g = 0; g < kTileGroups; g++) {
      V8 w[4];
      E::columns(E::block(data, k, group + g, begin + at), j, w);
#pragma GCC unroll 4
      for (int c = 0; c < 4; c++) v8_store(out + c * kPanel + 8 * g, w[c]);
    }
  };
#pragma GCC unroll 8
  for (int j = 0; j < 8; j++) piece(0, j);
  Chains<kRowTile, kTileColumns / kWide, true> chains(x, ldx, ahead);
  const float* row = panel;
  for (int64_t at = 0; at < depth; at += 32) {
    const bool more = at + 32 < depth;
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
      if (more) piece(at + 32, j);
      chains.template steps<4>(row, kPanel);
      row += 4 * kPanel;
    }
  }
  chains.add_to(total, first);
}

// Any number of rows, in as few tiles as hold them, of nearly the same height: a low last one would wait for
// its few chains. Tile t brings ahead[t] nearer. `open(column, totals, ahead)` may do the first kRowTile rows
// of a tile's columns, and says whether it did; `done(row, rows, column, columns)` is called after each tile.
template <class Open, class Done>
inline void chain_rows(int64_t rows, int64_t columns, int64_t depth, const float* x, int64_t ldx,
                       const float* panel, int64_t ldp, float* total, bool first, const Ahead* ahead,
                       int ahead_count, Open&& open, Done&& done) {
  int t = 0;
  for (int64_t column = 0; column < columns; column += kTileColumns) {
    const int64_t width = min64(kTileColumns, columns - column);
    const auto size = static_cast<size_t>((width - 1) / kColumnStep);
    int64_t tiles = (rows + kRowTile - 1) / kRowTile;
    for (int64_t row = 0; tiles > 0; tiles--, t++) {
      const Ahead next = t < ahead_count ? ahead[t] : Ahead{x, 0};
      if (row == 0 && open(column, total + column, next)) {
        done(0, kRowTile, column, width);
        row = kRowTile;
        continue;
      }
      const int64_t some = (rows - row + tiles - 1) / tiles;
      const auto& tiles_of = t < ahead_count ? kFetchingTiles[size] : kChainTiles[size];
      tiles_of[static_cast<size_t>(some - 1)](depth, x + row * ldx, ldx, panel + column, ldp,
                                              total + row * kPanel + column, first, next);
      done(row, some, column, width);
      row += some;
    }
  }
}

}  // namespace
}  // namespace cyb
