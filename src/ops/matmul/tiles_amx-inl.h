// SPDX-License-Identifier: Apache-2.0
// How the tiles of AMX are set up: two sets, used in turns. Tiles 0, 1, 6 and 7 hold sums, 2 and 3
// activations (16 rows of a block of 32), 4 and 5 codes (8 pieces of 4 columns of 16 rows of W).
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <initializer_list>

namespace cyb {
namespace {

// The processor's layout of a tile configuration (palette 1).
struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

constexpr TileConfig make_tile_config() {
  TileConfig config;
  for (int i : {0, 1, 6, 7}) config.rows[i] = 16, config.row_bytes[i] = 64;
  for (int i = 2; i < 4; i++) config.rows[i] = 16, config.row_bytes[i] = 32;
  for (int i = 4; i < 6; i++) config.rows[i] = 8, config.row_bytes[i] = 64;
  return config;
}
// Constant, not built where it is loaded: GCC's _tile_loadconfig tells the compiler of the first 8 bytes
// only.
constexpr TileConfig kTileConfig = make_tile_config();

struct Tiles {
  Tiles() { _tile_loadconfig(&kTileConfig); }
  ~Tiles() { _tile_release(); }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
};

}  // namespace
}  // namespace cyb
