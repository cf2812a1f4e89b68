// SPDX-License-Identifier: Apache-2.0
// 8-bit activations of many rows: some blocks of a few groups of W are expanded, once for all rows, to what
// the dot product takes, and tiles of rows run over them out of the first-level cache. Included after
// finish-inl.h by files that name their vectors in a policy P:
//   F, zero(), load(), store(), kLanes = 8 · kGroups; kRows of a tile; kBlockBytes of an expanded block,
//   kBlocksAtOnce of which, along K, fit 32 KB with the rows of a tile
//   expand(p, half, out, scale): one block of one group, for lanes of 8 (`out` and `scale` point at the
//   group's place) block<ROWS>(codes, scale, rows, acc): acc = fma(float(d) · scale_x, scale, acc)
#pragma once

#include <array>
#include <utility>

#include "ops/matmul/finish-inl.h"

namespace cyb {
namespace {

constexpr int64_t kMostRows = 192;  // that share an expansion, at most

// The current block of each row of a tile.
template <int ROWS>
struct RowBlocks {
  const Q8Block* at[ROWS];
  RowBlocks(const Q8Block* x, int64_t ldx) {
    for (int m = 0; m < ROWS; m++) at[m] = x + m * ldx;
  }
  __attribute__((always_inline)) const Q8Block& operator[](int m) const { return *at[m]; }
  __attribute__((always_inline)) void next() {
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) at[m]++;
  }
};

// Each block brings a line of the weights that are expanded next nearer, from `ahead` on.
template <class P, int ROWS>
void rows_tile(int64_t blocks, const Q8Block* x, int64_t ldx, const uint8_t* codes, const float* scales,
               float* total, bool first, const uint8_t* ahead) {
  typename P::F acc[ROWS];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) acc[m] = first ? P::zero() : P::load(total + P::kLanes * m);
  RowBlocks<ROWS> rows(x, ldx);
  for (int64_t b = 0; b < blocks; b++, codes += P::kBlockBytes, scales += P::kLanes, ahead += 64) {
    __builtin_prefetch(ahead, 0, 2);
    P::template block<ROWS>(codes, scales, rows, acc);
    rows.next();
  }
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) P::store(total + P::kLanes * m, acc[m]);
}

using RowsTile = void (*)(int64_t, const Q8Block*, int64_t, const uint8_t*, const float*, float*, bool,
                          const uint8_t*);
template <class P, int... ROWS>
constexpr std::array<RowsTile, sizeof...(ROWS)> rows_tiles(std::integer_sequence<int, ROWS...>) {
  return {rows_tile<P, ROWS + 1>...};
}

// f(row, rows) for tiles of at most MOST rows: as few as hold them, of nearly the same height.
template <int MOST, class F>
inline void even_tiles(int64_t begin, int64_t end, F&& f) {
  for (int64_t tiles = (end - begin + MOST - 1) / MOST; tiles > 0; tiles--) {
    const int64_t some = (end - begin + tiles - 1) / tiles;
    f(begin, some);
    begin += some;
  }
}

template <class P>
struct ManyRows {
  static constexpr int64_t kGroups = P::kLanes / 8, kBytes = P::Codes::kBytes;
  static constexpr int64_t kBlocksAtOnce = P::kBlocksAtOnce;

  static constexpr std::array<RowsTile, P::kRows> tiles() {
    if constexpr (requires { P::tiles(); })
      return P::tiles();
    else
      return rows_tiles<P>(std::make_integer_sequence<int, P::kRows>());
  }

  static void run(const MatmulArgs& args, const MatmulRange& range) {
    for (int64_t row = range.row_begin; row < range.row_end; row += kMostRows)
      rows(args, {row, min64(row + kMostRows, range.row_end), range.group_begin, range.group_end});
  }

  static void rows(const MatmulArgs& args, const MatmulRange& range) {
    constexpr auto kTiles = tiles();
    alignas(64) uint8_t codes[kBlocksAtOnce * P::kBlockBytes];
    alignas(64) float scales[kBlocksAtOnce * P::kLanes];
    alignas(64) float total[kMostRows * P::kLanes];
    const int64_t k = args.w.k, units = (k + 15) / 16, blocks = (k + 31) / 32;
    const int64_t bytes = group_bytes<typename P::Codes>(k);
    const int64_t chunks = (blocks + kBlocksAtOnce - 1) / kBlocksAtOnce,
                  step = (blocks + chunks - 1) / chunks;
    for (int64_t group = range.group_begin; group < range.group_end; group += kGroups)
      for (int64_t begin = 0; begin < blocks; begin += step) {
        const int64_t count = min64(step, blocks - begin);
        for (int64_t g = 0; g < kGroups;
             g++) {  // beyond the last group: that one again, for sums that nobody reads
          const uint8_t* p = args.w.data + min64(group + g, range.group_end - 1) * bytes + begin * kBytes;
          for (int64_t b = 0; b < count; b++)
            P::expand(p + b * kBytes, units % 2 != 0 && begin + b == blocks - 1,
                      codes + b * P::kBlockBytes + 32 * g, scales + b * P::kLanes + 8 * g);
        }
        const bool last = begin + step >= blocks;
        const uint8_t* ahead =
            args.w.data + (last ? (group + kGroups) * bytes : group * bytes + (begin + step) * kBytes);
        int64_t tile = 0;
        even_tiles<P::kRows>(range.row_begin, range.row_end, [&](int64_t row, int64_t some) {
          float* t = total + (row - range.row_begin) * P::kLanes;
          kTiles[static_cast<size_t>(some - 1)](count, args.xq + row * args.ldxq + begin, args.ldxq, codes,
                                                scales, t, begin == 0,
                                                ahead + tile % kGroups * bytes + tile / kGroups * count * 64);
          tile++;
          if (last)
            for (int64_t g = 0; g < min64(kGroups, range.group_end - group); g++)
              finish(args, row, some, (group + g) * 8, t + 8 * g, P::kLanes);
        });
      }
  }
};

}  // namespace
}  // namespace cyb
