// SPDX-License-Identifier: Apache-2.0
#include "ops/conv/winograd.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/checked.h"

namespace cyb {
namespace {

// Transformed tiles and sums of an item stay in a second-level cache of 1 MB.
constexpr int64_t kItemFloats = 128 << 10;
constexpr int64_t kOwnPositions = 64;  // four lines of a channel

int64_t item_floats(const WinogradArgs& a, int64_t tiles) {
  const int64_t out = ceil_div(ceil_div<int64_t>(a.out_groups(), a.vectors), a.splits) * a.vectors * 16;
  return a.products() * tiles * (a.in_padded() + out);
}

}  // namespace

int64_t WinogradArgs::floats() const {
  const int64_t pitch = round_up<int64_t>(16 * tile + 2, 16);
  return (tile + 2) * pitch * 16 + item_floats(*this, block) + 64;
}

void winograd_plan(WinogradArgs* args, int vectors, int threads) {
  WinogradArgs& a = *args;
  a.vectors = vectors;
  a.tiles_y = ceil_div<int64_t>(a.out_height, a.tile);
  a.tiles_x = ceil_div<int64_t>(a.out_width, a.tile);
  const int64_t tiles = a.tiles_y * a.tiles_x, channel_blocks = ceil_div<int64_t>(a.out_groups(), vectors);
  // Few tiles an item read all weights again and again; many do not fit the cache.
  const int64_t fit = kItemFloats / (a.products() * (a.in_padded() + 16 * a.out_groups()));
  const int64_t most = std::max<int64_t>(fit, 24);
  a.blocks = std::max<int64_t>(1, ceil_div(tiles, most));
  // Blocks an image so that the batch shares out.
  const int64_t unit = threads / std::gcd<int64_t>(a.batch, threads);
  if (threads > 1 && a.batch * a.blocks < 4 * threads) {
    if (tiles >= 24 * threads)
      a.blocks = std::max(a.blocks, std::min<int64_t>(round_up<int64_t>(a.blocks, threads), tiles / 12));
    // Threads with positions of their own find near what they wrote, if these are several lines of each
    // channel. All weights for 8 tiles take as long to come as to multiply; for fewer tiles each thread has
    // its share of the channels.
    if (tiles >= 8 * unit && a.out_height * a.out_width >= kOwnPositions * unit)
      a.blocks = round_up<int64_t>(a.blocks, unit);
  }
  a.block = std::max<int64_t>(1, ceil_div(tiles, a.blocks));
  a.blocks = ceil_div(tiles, a.block);
  const int64_t items = a.batch * a.blocks;
  a.splits = items < 4 * threads && items % threads != 0 ? std::min<int64_t>(channel_blocks, threads) : 1;
}

double product_cost(const WinogradArgs& a) {
  const auto width = static_cast<double>(a.out_width + 2);
  const double vectors = std::ceil(width * static_cast<double>(a.out_height) / 16);
  return 9.5 * static_cast<double>(a.in) * static_cast<double>(round_up<int64_t>(a.out, 8)) * vectors;
}

double winograd_cost(const WinogradArgs& a) {
  const auto tiles =
      static_cast<double>(ceil_div<int64_t>(a.out_height, a.tile) * ceil_div<int64_t>(a.out_width, a.tile));
  const auto products = static_cast<double>(a.products()), groups = static_cast<double>(a.out_groups());
  const double sums = products * tiles * static_cast<double>(a.in) * groups * 1.1;
  const double moves = tiles * 12 * products * (static_cast<double>(a.in_padded() / 16) + groups);
  // Weights come from memory, 2.5 bytes a cycle where it is slow, and for each further 24 tiles from a cache.
  const double lines = products * static_cast<double>(a.in) * groups;
  const double weights = lines * (26 + 6 * (std::ceil(tiles / 24) - 1));
  return std::max(sums, weights) + moves;
}

int64_t winograd_floats(const WinogradArgs& a) { return a.products() * a.in * a.out_groups() * 16; }

void winograd_pack(const WinogradArgs& a, const float* w, float* u) {
  const int n = a.tile + 2;
  const double s = std::sqrt(0.5), t = std::sqrt(2.0);
  const double g4[6][3] = {{1, 0, 0},
                           {-1 / 1.5, -s / 1.5, -0.5 / 1.5},
                           {-1 / 1.5, s / 1.5, -0.5 / 1.5},
                           {1.0 / 6, t / 6, 2.0 / 6},
                           {1.0 / 6, -t / 6, 2.0 / 6},
                           {0, 0, 1}};
  const double g2[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const auto* g = a.tile == 4 ? g4 : g2;
  const int64_t groups = a.out_groups();
  for (int64_t b = 0; b < groups; b += a.vectors) {
    const int64_t width = 16 * std::min<int64_t>(a.vectors, groups - b);
    for (int64_t j = 0; j < width; j++)
      for (int64_t k = 0; k < a.in; k++) {
        const int64_t channel = 16 * b + j;
        double half[6][3] = {};
        if (channel < a.out) {
          const float* from = w + (channel * a.in + k) * 9;
          for (int i = 0; i < n; i++)
            for (int x = 0; x < 3; x++)
              half[i][x] = g[i][0] * static_cast<double>(from[x]) +
                           g[i][1] * static_cast<double>(from[3 + x]) +
                           g[i][2] * static_cast<double>(from[6 + x]);
        }
        float* to = u + b * 16 * a.in + k * width + j;
        for (int i = 0; i < n; i++)
          for (int x = 0; x < n; x++)
            to[(i * n + x) * groups * 16 * a.in] =
                static_cast<float>(half[i][0] * g[x][0] + half[i][1] * g[x][1] + half[i][2] * g[x][2]);
      }
  }
}

}  // namespace cyb
