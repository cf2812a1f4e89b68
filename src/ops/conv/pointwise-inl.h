// SPDX-License-Identifier: Apache-2.0
// Convolutions whose windows do not overlap, of few or strided positions: lanes are output channels.
// Positions are read one by one, of 1 × 1 convolutions from a copy, of patches where they lie. The sums and
// their bits are those of product-inl.h.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/conv/tile-inl.h"
#include "ops/conv/transpose_out-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr int kPointwiseRows = kParts == 1 ? 12 : kParts == 16 ? 4 : 6;
inline constexpr int kPointwiseVectors = kParts == 1 ? 2 : 1;
inline constexpr int64_t kPointwiseChunk = PointwiseArgs::kMostPositions;  // whose sums wait together

// m[position][channel] = Σ x[offsets[k] + position·step] · w[k][channel] + bias[channel], or of a copy
// x[k][position] with COPIED. FETCH: the block of w that comes next is brought nearer.
template <int ROWS, int VECTORS, bool FETCH, bool COPIED>
static void pointwise_tile(const float* x, int64_t step, const int64_t* offsets, const float* w,
                           int64_t depth, const float* bias, float* m, int64_t m_stride) {
  const int64_t ahead = depth * 16 * VECTORS, between = COPIED ? 1 : step;
  for (int64_t from = 0; from < depth; from += 256) {
    const int64_t to = from + 256 < depth ? from + 256 : depth;
    Vec acc[ROWS][VECTORS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] =
        set1(0.0f);
    const auto one = [&](int64_t k) CYB_INNER {
      const float* at = x + (COPIED ? k * ROWS : offsets[k]);
      Vec u[VECTORS];
      CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
        u[j] = load(w + 16 * j);
        if (FETCH) fetch(w + ahead + 16 * j);
      }
      fma_rows(acc, u, [&](int i) CYB_INNER { return at + i * between; });
      w += 16 * VECTORS;
    };
    int64_t k = from;
    for (; k + 2 <= to; k += 2) {
      one(k);
      one(k + 1);
    }
    if (k < to) one(k);
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) {
      float* t = m + i * m_stride + 16 * j;
      const Vec sum = (from == 0 ? set1(0.0f) : load(t)) + acc[i][j];
      store(t, to == depth ? sum + load(bias + 16 * j) : sum);
    }
  }
}

using PointwiseTile = void (*)(const float* x, int64_t step, const int64_t* offsets, const float* w,
                               int64_t depth, const float* bias, float* m, int64_t m_stride);

template <int VECTORS, bool FETCH, bool COPIED>
static PointwiseTile pointwise_tile_of(int64_t rows) {
  switch (rows) {
#define CYB_CASE(n) \
  case n:           \
    return pointwise_tile<n, VECTORS, FETCH, COPIED>;
    CYB_TILE_ROWS(CYB_CASE)
#undef CYB_CASE
  }
  return nullptr;
}

template <bool FETCH>
static PointwiseTile pointwise_tile_of(int64_t rows, int64_t vectors, bool copied) {
  if (copied)
    return vectors == 1 ? pointwise_tile_of<1, FETCH, true>(rows)
                        : pointwise_tile_of<kPointwiseVectors, FETCH, true>(rows);
  return vectors == 1 ? pointwise_tile_of<1, FETCH, false>(rows)
                      : pointwise_tile_of<kPointwiseVectors, FETCH, false>(rows);
}

// Rows [n·i / parts, n·(i + 1) / parts) of a chunk of n positions are a tile.
inline constexpr int64_t kPointwiseParts = (kPointwiseChunk + kPointwiseRows - 1) / kPointwiseRows;
CYB_INLINE int64_t copied_tile(const PointwiseArgs& a) { return a.taps * kPointwiseRows + 16; }

// Positions of one row: where they lie in x, their number, and the first one's place in the chunk.
struct PositionRun {
  int64_t at, count, to;
};

static int64_t position_runs(const PointwiseArgs& a, int64_t first, int64_t last, PositionRun* runs) {
  int64_t count = 0;
  for (int64_t p = first; p < last; ++count) {
    const int64_t row = p / a.out_width, end = low((row + 1) * a.out_width, last);
    runs[count] = {row / a.out_height * a.depth_step + row % a.out_height * a.row_step +
                       (p - row * a.out_width) * a.step,
                   end - p, p - first};
    p = end;
  }
  return count;
}

// Positions [first, last) of an image, tile by tile, [tap][position of the tile]: as they lie, those of a tap
// are far from those of the next one, in lines that are read in part.
static void copy_positions(const PointwiseArgs& a, const float* x, int64_t first, int64_t last, float* to) {
  alignas(64) float line[kPointwiseChunk + 32];
  PositionRun runs[kPointwiseChunk];
  const int64_t run_count = position_runs(a, first, last, runs);
  const int64_t n = last - first, parts = (n + kPointwiseRows - 1) / kPointwiseRows, tile = copied_tile(a);
  int64_t begin[kPointwiseParts + 1];
  for (int64_t i = 0; i <= parts; ++i) begin[i] = n * i / parts;
  for (int64_t k = 0; k < a.taps; ++k) {
    const float *at = x + a.offsets[k], *row = line;
    // What follows may be read, but not behind the last tap's plane.
    const bool inside = a.offsets[a.taps - 1] - a.offsets[k] >= 32;
    if (a.step == 1 && run_count == 1 && inside) {
      row = at + runs[0].at;
    } else if (a.step == 2 && inside) {
      for (int64_t r = 0; r < run_count; ++r)
        for (int64_t j = 0; j < runs[r].count; j += 16) {
          const float* p = at + runs[r].at + 2 * j;
          Vec even, odd;
          split_pairs(load(p), load(p + 16), &even, &odd);
          store(line + runs[r].to + j, even);
        }
    } else {
      for (int64_t r = 0; r < run_count; ++r)
        copy_strided(at + runs[r].at, (runs[r].count - 1) * a.step + 1, 0, a.step, runs[r].count,
                     line + runs[r].to, 0.0f);
    }
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t r = begin[i];
      store(to + i * tile + k * (begin[i + 1] - r), load(row + r));
    }
  }
}

// While the sums of positions [from, to) run, the share of the residual's lines that these have of [first,
// last).
CYB_INLINE void fetch_residual(const PointwiseArgs& a, int64_t image, int64_t channel, int64_t width,
                               int64_t first, int64_t last, int64_t from, int64_t to) {
  const int64_t positions = a.out_depth * a.out_height * a.out_width, n = last - first;
  const int64_t end = width * (to - first) / n;
  for (int64_t c = width * (from - first) / n; c < end && channel + c < a.out; ++c) {
    const int64_t at = (image * a.out + channel + c) * positions;
    for (int64_t p = first; p < last; p += 16) fetch(a.finish.residual + at + p);
  }
}

static void pointwise(const PointwiseArgs& a, int64_t begin, int64_t end, float* copy) {
  alignas(64) float m[(kPointwiseChunk + 16) * 16 * kPointwiseVectors];
  alignas(64) float bias[16 * kPointwiseVectors];
  const TransposeOut transpose_out = transpose_out_of(a.finish.act.activation);
  const int64_t groups = (a.out + 15) / 16, blocks = (groups + kPointwiseVectors - 1) / kPointwiseVectors;
  const int64_t positions = a.out_depth * a.out_height * a.out_width;
  for (int64_t i = 0; i < kPointwiseChunk + 16; ++i)
    for (int v = 0; v < kPointwiseVectors; ++v) store(m + (i * kPointwiseVectors + v) * 16, set1(0.0f));
  int64_t held = -1;  // the chunk whose copy is there
  for (int64_t item = begin; item < end; ++item) {
    const int64_t split = item % a.splits, chunk = item / a.splits % a.chunks,
                  image = item / a.splits / a.chunks;
    const int64_t first = positions * chunk / a.chunks, last = positions * (chunk + 1) / a.chunks;
    if (first == last) continue;  // no positions at all
    const float* x = a.x + image * a.image;
    PositionRun runs[kPointwiseChunk];
    const int64_t run_count = a.copied ? 0 : position_runs(a, first, last, runs);
    if (a.copied && item / a.splits != held) copy_positions(a, x, first, last, copy);
    held = item / a.splits;
    for (int64_t b = blocks * split / a.splits; b < blocks * (split + 1) / a.splits; ++b) {
      const int64_t left = groups - b * kPointwiseVectors,
                    vectors = left < kPointwiseVectors ? left : kPointwiseVectors;
      const int64_t channel = b * kPointwiseVectors * 16, width = 16 * vectors;
      for (int64_t i = 0; i < width; ++i)
        bias[i] = a.finish.bias && channel + i < a.out ? a.finish.bias[channel + i] : 0.0f;
      const float* w = a.w + channel * a.taps;
      // Rows [r, r + rows) of the chunk, x from `at` on.
      const auto tile = [&](int64_t r, int64_t rows, const float* at) {
        if (a.finish.residual)
          fetch_residual(a, image, channel, width, first, last, first + r, first + r + rows);
        (r == 0 ? pointwise_tile_of<true>(rows, vectors, a.copied)
                : pointwise_tile_of<false>(rows, vectors, a.copied))(at, a.step, a.offsets, w, a.taps, bias,
                                                                     m + r * width, width);
      };
      if (a.copied) {
        const int64_t n = last - first, parts = (n + kPointwiseRows - 1) / kPointwiseRows;
        for (int64_t i = 0; i < parts; ++i) {
          const int64_t r = n * i / parts;
          tile(r, n * (i + 1) / parts - r, copy + i * copied_tile(a));
        }
      } else {
        for (int64_t q = 0; q < run_count; ++q) {
          const int64_t n = runs[q].count, parts = (n + kPointwiseRows - 1) / kPointwiseRows;
          for (int64_t i = 0; i < parts; ++i) {
            const int64_t r = n * i / parts;
            tile(runs[q].to + r, n * (i + 1) / parts - r, x + runs[q].at + r * a.step);
          }
        }
      }
      for (int64_t v = 0; v < vectors; ++v) {
        const int64_t c = channel + 16 * v, to = (image * a.out + c) * positions + first;
        transpose_out(a.finish, {width, 0, 0, positions}, m + 16 * v, 1, last - first,
                      a.out - c < 16 ? a.out - c : 16, a.y + to,
                      a.finish.residual ? a.finish.residual + to : nullptr);
      }
    }
  }
}

static int64_t pointwise_floats(const PointwiseArgs& a) {
  return a.copied ? kPointwiseParts * copied_tile(a) : 0;
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
