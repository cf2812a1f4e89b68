// SPDX-License-Identifier: Apache-2.0
// winograd.h on sixteen lanes, which are channels: tiles are transposed on the way in and out.
#pragma once

#include "ops/conv/tile-inl.h"
#include "ops/conv/transpose_out-inl.h"
#include "ops/conv/winograd.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

// Rows are tiles, vectors output channels.
inline constexpr int kWinogradRows = kParts == 1 ? 12 : kParts == 16 ? 4 : 6;
inline constexpr int kWinogradVectors = kParts == 1 ? 2 : 1;
inline constexpr int64_t kWinogradChain = 256;
static_assert(kWinogradChain % 2 == 0);  // channels are taken in twos
inline constexpr int64_t kSegment = 16;  // tiles of one row that pass through the buffers together

template <int T>
struct Winograd;

template <>
struct Winograd<4> {
  static constexpr int kIn = 6;
  // a = √½, b = √2: d4 − b²·d2 ± a·(d3 − b²·d1), and so on.
  static CYB_LAMBDA void input(const Vec* d, Vec* o) {
    const Vec a = set1(0.70710678118654752f), b = set1(1.41421356237309505f);
    const Vec two = set1(2.0f), half = set1(0.5f), five = set1(2.5f);
    const Vec e1 = fnma(two, d[2], d[4]), q1 = fnma(two, d[1], d[3]);
    const Vec e2 = fnma(half, d[2], d[4]), q2 = fnma(half, d[1], d[3]);
    o[0] = fnma(five, d[2], d[0] + d[4]);
    o[1] = fma(a, q1, e1);
    o[2] = fnma(a, q1, e1);
    o[3] = fma(b, q2, e2);
    o[4] = fnma(b, q2, e2);
    o[5] = fnma(five, d[3], d[1] + d[5]);
  }
  static CYB_LAMBDA void output(const Vec* m, Vec* y) {
    const Vec a = set1(0.70710678118654752f), b = set1(1.41421356237309505f);
    const Vec a3 = set1(0.35355339059327376f), b3 = set1(2.8284271247461901f);
    const Vec s1 = m[1] + m[2], t1 = m[1] - m[2], s2 = m[3] + m[4], t2 = m[3] - m[4];
    y[0] = m[0] + s1 + s2;
    y[1] = fma(b, t2, a * t1);
    y[2] = fma(set1(2.0f), s2, set1(0.5f) * s1);
    y[3] = fma(b3, t2, fma(a3, t1, m[5]));
  }
};

template <>
struct Winograd<2> {
  static constexpr int kIn = 4;
  static CYB_LAMBDA void input(const Vec* d, Vec* o) {
    o[0] = d[0] - d[2];
    o[1] = d[1] + d[2];
    o[2] = d[2] - d[1];
    o[3] = d[3] - d[1];
  }
  static CYB_LAMBDA void output(const Vec* m, Vec* y) {
    y[0] = m[0] + m[1] + m[2];
    y[1] = m[1] - m[2] + m[3];
  }
};

// v[xi][…] of one tile and 16 channels; positions of d are 16 floats, its rows `pitch` positions apart.
template <int T>
static void transform_input(const float* d, int64_t pitch, float* v, int64_t stride) {
  constexpr int n = Winograd<T>::kIn;
  Vec t[n][n];  // [column][row]
  CYB_UNROLL for (int j = 0; j < n; ++j) {
    Vec c[n];
    CYB_UNROLL for (int i = 0; i < n; ++i) c[i] = load(d + (i * pitch + j) * 16);
    Winograd<T>::input(c, t[j]);
  }
  CYB_UNROLL for (int i = 0; i < n; ++i) {
    Vec r[n], o[n];
    CYB_UNROLL for (int j = 0; j < n; ++j) r[j] = t[j][i];
    Winograd<T>::input(r, o);
    CYB_UNROLL for (int j = 0; j < n; ++j) store(v + (i * n + j) * stride, o[j]);
  }
}

template <int T>
static void transform_output(const float* m, int64_t stride, Vec bias, float* y, int64_t pitch) {
  constexpr int n = Winograd<T>::kIn;
  Vec t[n][T];  // [column][row]
  CYB_UNROLL for (int j = 0; j < n; ++j) {
    Vec c[n];
    CYB_UNROLL for (int i = 0; i < n; ++i) c[i] = load(m + (i * n + j) * stride);
    Winograd<T>::output(c, t[j]);
  }
  CYB_UNROLL for (int i = 0; i < T; ++i) {
    Vec r[n], o[T];
    CYB_UNROLL for (int j = 0; j < n; ++j) r[j] = t[j][i];
    Winograd<T>::output(r, o);
    CYB_UNROLL for (int j = 0; j < T; ++j) store(y + (i * pitch + j) * 16, o[j] + bias);
  }
}

// m[tile][channel] = Σ v[tile][k]·u[k][channel]. The first rows to read a block of u fetch the one that comes
// next: a network's transformed weights do not stay in a cache from one run to the next.
template <int ROWS, int VECTORS, bool FETCH>
static void winograd_tile(const float* v, int64_t v_stride, const float* u, int64_t depth, float* m,
                          int64_t m_stride) {
  constexpr int kBases = (ROWS + 2) / 3;
  const int64_t ahead = depth * 16 * VECTORS;
  // Every third row has a pointer that moves: with one for each, registers run out.
  const float* base[kBases];
  CYB_UNROLL for (int i = 0; i < kBases; ++i) base[i] = v + 3 * i * v_stride;
  for (int64_t from = 0; from < depth; from += kWinogradChain) {
    const int64_t to = from + kWinogradChain < depth ? from + kWinogradChain : depth;
    Vec acc[ROWS][VECTORS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] =
        set1(0.0f);
    const auto step = [&](int c) CYB_INNER {
      Vec w[VECTORS];
      CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
        w[j] = load(u + 16 * j);
        if (FETCH) fetch(u + ahead + 16 * j);
      }
      fma_rows(acc, w, [&](int i) CYB_INNER { return base[i / 3] + i % 3 * v_stride + c; });
      u += 16 * VECTORS;
    };
    int64_t k = from;
    for (; k + 2 <= to; k += 2) {
      step(0);
      step(1);
      CYB_UNROLL for (int i = 0; i < kBases; ++i) base[i] += 2;
    }
    if (k < to) step(0);
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
      float* t = m + i * m_stride + 16 * j;
      store(t, (from == 0 ? set1(0.0f) : load(t)) + acc[i][j]);
    }
  }
}

using WinogradTile = void (*)(const float* v, int64_t v_stride, const float* u, int64_t depth, float* m,
                              int64_t m_stride);

template <int VECTORS, bool FETCH>
static WinogradTile winograd_tile_of(int64_t rows) {
  switch (rows) {
#define CYB_CASE(n) \
  case n:           \
    return winograd_tile<n, VECTORS, FETCH>;
    CYB_TILE_ROWS(CYB_CASE)
#undef CYB_CASE
  }
  return nullptr;
}

// Positions [x, x + n) of row iy of channels c … c + 16 to to[position][channel], zeros outside; n is a
// multiple of 16.
static void transpose_in(const WinogradArgs& a, const float* image, int64_t c, int64_t iy, int64_t x,
                         int64_t n, float* to) {
  const int64_t plane = a.height * a.width;
  if (iy < 0 || iy >= a.height) {
    for (int64_t i = 0; i < n; ++i) store(to + 16 * i, set1(0.0f));
    return;
  }
  const float* row = image + c * plane + iy * a.width;
  alignas(64) float part[16 * 16];
  for (int64_t i = 0; i < n; i += 16, x += 16, to += 256) {
    if (x >= 0 && x + 16 <= a.width && c + 16 <= a.in) {
      transpose16(row + x, plane, to, 16);
      continue;
    }
    const int64_t low = x < 0 ? -x : 0, room = 16 - low, left = a.width - x - low;
    const int64_t count = room < left ? room : left, channels = a.in - c < 16 ? a.in - c : 16;
    for (int64_t r = 0; r < 16; ++r) store(part + 16 * r, set1(0.0f));
    if (count > 0)
      for (int64_t r = 0; r < channels; ++r)
        store_first(part + 16 * r + low, load_first(row + r * plane + x + low, count), count);
    transpose16(part, 16, to, 16);
  }
}

// The positions from (iy, ix) on that a tile reads, of 16 channels in blocks: where they lie, or with zeros
// around them in `to`. Returns them and the positions between rows.
template <int T>
static const float* tile_of_blocks(const WinogradArgs& a, const float* plane, int64_t iy, int64_t ix,
                                   float* to, int64_t* pitch) {
  constexpr int64_t n = Winograd<T>::kIn;
  if (iy >= 0 && ix >= 0 && iy + n <= a.height && ix + n <= a.width) {
    *pitch = a.width;
    return plane + (iy * a.width + ix) * 16;
  }
  *pitch = n;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      const int64_t y = iy + i, x = ix + j;
      const bool inside = y >= 0 && x >= 0 && y < a.height && x < a.width;
      store(to + (i * n + j) * 16, inside ? load(plane + (y * a.width + x) * 16) : set1(0.0f));
    }
  return to;
}

// Calls f(tile row, first and last tile of it, index of the first one in the block) for tiles [begin, end).
template <class F>
static inline void each_segment(int64_t begin, int64_t end, int64_t tiles_x, F&& f) {
  for (int64_t t = begin; t < end;) {
    const int64_t ty = t / tiles_x, tx = t % tiles_x;
    int64_t n = tiles_x - tx < end - t ? tiles_x - tx : end - t;
    if (n > kSegment) n = kSegment;
    f(ty, tx, tx + n, t - begin);
    t += n;
  }
}

template <int T>
static void winograd_items(const WinogradArgs& a, int64_t begin, int64_t end, float* scratch) {
  constexpr int64_t n = Winograd<T>::kIn, products = n * n;
  constexpr int64_t pitch = (kSegment * T + 2 + 15) / 16 * 16;
  const int64_t in = a.in_padded(), groups = a.out_groups();
  const int64_t in_plane = a.height * a.width, out_plane = a.out_height * a.out_width;
  float* buffer = scratch;  // n rows of `pitch` positions
  float* v = buffer + n * pitch * 16;
  float* m = v + products * a.block * in;
  const TransposeOut transpose_out = transpose_out_of(a.finish.act.activation);
  const FinishBlocks finish_blocks = finish_blocks_of(a.finish.act.activation);
  const TransposedRows shape{16, pitch * 16, a.out_width, out_plane};
  int64_t held = -1;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t split = item % a.splits, piece = item / a.splits, image = piece / a.blocks;
    const int64_t first = piece % a.blocks * a.block, all = a.tiles_y * a.tiles_x;
    const int64_t last = first + a.block < all ? first + a.block : all, count = last - first;
    const float* x = a.x + image * a.in * in_plane;
    if (piece != held)
      for (int64_t c = 0; c < a.in; c += 16)
        each_segment(first, last, a.tiles_x, [&](int64_t ty, int64_t tx, int64_t tx_end, int64_t at) {
          if (a.x_blocked) {
            for (int64_t t = tx; t < tx_end; ++t, ++at) {
              int64_t between = 0;
              const float* d =
                  tile_of_blocks<T>(a, x + c * in_plane, ty * T - a.pad_y, t * T - a.pad_x, buffer, &between);
              transform_input<T>(d, between, v + at * in + c, count * in);
            }
            return;
          }
          const int64_t width = ((tx_end - tx) * T + 2 + 15) / 16 * 16;
          for (int64_t r = 0; r < n; ++r)
            transpose_in(a, x, c, ty * T + r - a.pad_y, tx * T - a.pad_x, width, buffer + r * pitch * 16);
          for (int64_t t = tx; t < tx_end; ++t, ++at)
            transform_input<T>(buffer + (t - tx) * T * 16, pitch, v + at * in + c, count * in);
        });
    held = piece;

    // Blocks of `vectors` groups of 16 output channels.
    const int64_t blocks = (groups + a.vectors - 1) / a.vectors;
    const int64_t from = blocks * split / a.splits, to = blocks * (split + 1) / a.splits;
    const int64_t group = from * a.vectors, group_end = to * a.vectors < groups ? to * a.vectors : groups;
    const int64_t width = 16 * (group_end - group);
    for (int64_t xi = 0; xi < products; ++xi)
      for (int64_t b = from; b < to; ++b) {
        const int64_t vectors = groups - b * a.vectors < a.vectors ? groups - b * a.vectors : a.vectors;
        const float* u = a.u + (xi * groups + b * a.vectors) * 16 * a.in;
        float* out = m + xi * count * width + (b - from) * a.vectors * 16;
        const int64_t parts = (count + kWinogradRows - 1) / kWinogradRows;
        for (int64_t p = 0; p < parts; ++p) {
          const int64_t r = count * p / parts, rows = count * (p + 1) / parts - r;
          const WinogradTile tile = p == 0 ? (vectors == 1 ? winograd_tile_of<1, true>(rows)
                                                           : winograd_tile_of<kWinogradVectors, true>(rows))
                                           : (vectors == 1 ? winograd_tile_of<1, false>(rows)
                                                           : winograd_tile_of<kWinogradVectors, false>(rows));
          tile(v + (xi * count + r) * in, in, u, a.in, out + r * width, width);
        }
      }

    for (int64_t g = group; g < group_end; ++g) {
      const int64_t channels = a.out - 16 * g < 16 ? a.out - 16 * g : 16;
      const Vec bias = a.finish.bias ? load_first(a.finish.bias + 16 * g, channels) : set1(0.0f);
      const int64_t plane = (image * a.out + 16 * g) * out_plane;
      each_segment(first, last, a.tiles_x, [&](int64_t ty, int64_t tx, int64_t tx_end, int64_t at) {
        for (int64_t t = tx; t < tx_end; ++t, ++at)
          transform_output<T>(m + at * width + (g - group) * 16, count * width, bias,
                              buffer + (t - tx) * T * 16, pitch);
        const int64_t y = ty * T, left = a.out_width - tx * T, rows = a.out_height - y;
        const int64_t columns = (tx_end - tx) * T < left ? (tx_end - tx) * T : left;
        if (a.y_blocked) {
          for (int64_t r = 0; r < (rows < T ? rows : T); ++r) {
            const int64_t row = plane + ((y + r) * a.out_width + tx * T) * 16;
            finish_blocks(a.finish, buffer + r * pitch * 16, columns, a.y + row,
                          a.finish.residual ? a.finish.residual + row : nullptr);
          }
          return;
        }
        const int64_t to_y = plane + y * a.out_width + tx * T;
        transpose_out(a.finish, shape, buffer, rows < T ? rows : T, columns, channels, a.y + to_y,
                      a.finish.residual ? a.finish.residual + to_y : nullptr);
      });
    }
  }
}

static void winograd(const WinogradArgs& a, int64_t begin, int64_t end, float* scratch) {
  a.tile == 4 ? winograd_items<4>(a, begin, end, scratch) : winograd_items<2>(a, begin, end, scratch);
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
