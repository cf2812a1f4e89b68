// SPDX-License-Identifier: Apache-2.0
// nchw16c.h on sixteen lanes.
#pragma once

#include "ops/conv/copy-inl.h"
#include "ops/conv/nchw16c.h"
#include "ops/conv/tile-inl.h"
#include "ops/conv/transpose_out-inl.h"

#ifdef CYB_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
#endif
namespace cyb::CYB_SIMD {

inline constexpr int kNchw16cVectors = kParts == 1 ? 4 : 1;
// Positions of a tile of `vectors` groups of output channels.
inline constexpr int nchw16c_tile_rows(int64_t vectors) {
  return kParts == 1 ? (vectors == 4 ? 6 : 12) : kParts == 16 ? 4 : 6;
}
inline constexpr int64_t kNchw16cRun = 48;  // positions whose sums wait for a plain result

// Where a tile's positions lie: those known when it is compiled need no pointers of their own.
enum class TileStep {
  points,  // 1 × 1 from blocks: no offsets, positions 16 floats apart
  one,     // next to each other: the copy of plain rows
  pairs,   // 32 floats, such as blocks with a stride of 2
  any,
};

struct Nchw16cTile {
  const int64_t* offsets;  // null: blocks of 16 channels, `plane` apart
  int64_t step, plane, depth;
  int64_t to_position, to_vector;  // floats of y
  int64_t ahead;                   // floats of w to a line that is wanted next
  bool finish;                     // with residual and max(…, least)
  float least;
};

// y[position][channel] = Σ x[k][position] · w[k][channel] + bias[channel], finished or not. FETCH: the block
// of w that comes next is brought nearer.
template <int ROWS, int VECTORS, TileStep STEP, bool FETCH>
static void nchw16c_tile(const Nchw16cTile& t, const float* x, const float* w, const float* bias, float* y,
                         const float* residual) {
  for (int64_t from = 0; from < t.depth || from == 0; from += 256) {
    const int64_t to = from + 256 < t.depth ? from + 256 : t.depth;
    Vec acc[ROWS][VECTORS];
    CYB_UNROLL for (int i = 0; i < ROWS; ++i) CYB_UNROLL for (int j = 0; j < VECTORS; ++j) acc[i][j] =
        set1(0.0f);
    const auto one = [&](const float* at, int64_t step) CYB_INNER {
      Vec u[VECTORS];
      CYB_UNROLL for (int j = 0; j < VECTORS; ++j) u[j] = load(w + 16 * j);
      if (FETCH) fetch(w + t.ahead);
      fma_rows(acc, u, [&](int i) CYB_INNER { return at + i * step; });
      w += 16 * VECTORS;
    };
    if constexpr (STEP == TileStep::points) {
      for (int64_t k = from; k < to; k += 16) {
        const float* at = x + k / 16 * t.plane;
        for (int c = 0; c < 4; ++c, at += 4) {
          one(at, 16);
          one(at + 1, 16);
          one(at + 2, 16);
          one(at + 3, 16);
        }
      }
    } else {
      const int64_t step = STEP == TileStep::one ? 1 : STEP == TileStep::pairs ? 32 : t.step;
      for (int64_t k = from; k < to; ++k) {
        const float* at = x + t.offsets[k];
        asm("" : "+r"(at));  // with an index the multiply-adds would be two instructions each
        one(at, step);
      }
    }
    const Vec least = set1(t.least);
    CYB_UNROLL for (int j = 0; j < VECTORS; ++j) CYB_UNROLL for (int i = 0; i < ROWS; ++i) {
      float* at = y + j * t.to_vector + i * t.to_position;
      Vec sum = (from == 0 ? set1(0.0f) : load(at)) + acc[i][j];
      if (to == t.depth) {
        sum = sum + load(bias + 16 * j);
        if (t.finish) {
          if (residual) sum = sum + load(residual + j * t.to_vector + i * t.to_position);
          sum = if_less(sum, least, least, sum);
        }
      }
      store(at, sum);
    }
  }
}

using Nchw16cTileRun = void (*)(const Nchw16cTile& t, const float* x, const float* w, const float* bias,
                                float* y, const float* residual);

template <int VECTORS, TileStep STEP, bool FETCH>
static Nchw16cTileRun nchw16c_tile_of(int64_t rows) {
  switch (rows) {
#define CYB_CASE(n)                                                                              \
  case n:                                                                                        \
    if constexpr (n <= nchw16c_tile_rows(VECTORS)) return nchw16c_tile<n, VECTORS, STEP, FETCH>; \
    break;
    CYB_TILE_ROWS(CYB_CASE)
#undef CYB_CASE
  }
  return nullptr;
}

template <TileStep STEP, bool FETCH>
static Nchw16cTileRun nchw16c_tile_of(int64_t rows, int64_t vectors) {
  if (vectors == 1) return nchw16c_tile_of<1, STEP, FETCH>(rows);
  constexpr int half = (kNchw16cVectors + 1) / 2;
  return vectors == half ? nchw16c_tile_of<half, STEP, FETCH>(rows)
                         : nchw16c_tile_of<kNchw16cVectors, STEP, FETCH>(rows);
}

static Nchw16cTileRun nchw16c_tile_of(TileStep step, bool opens, int64_t rows, int64_t vectors) {
  switch (step) {
    case TileStep::points:
      return opens ? nchw16c_tile_of<TileStep::points, true>(rows, vectors)
                   : nchw16c_tile_of<TileStep::points, false>(rows, vectors);
    case TileStep::pairs:
      return opens ? nchw16c_tile_of<TileStep::pairs, true>(rows, vectors)
                   : nchw16c_tile_of<TileStep::pairs, false>(rows, vectors);
    case TileStep::one:  // a first layer has few weights
      return nchw16c_tile_of<TileStep::one, false>(rows, vectors);
    case TileStep::any:
      break;
  }
  return opens ? nchw16c_tile_of<TileStep::any, true>(rows, vectors)
               : nchw16c_tile_of<TileStep::any, false>(rows, vectors);
}

// Rows [row, row + rows) of an image in blocks, columns [col, col + copy_cols), zeros outside:
// [c / 16][row][col][16].
static void copy_rows_of_blocks(const Nchw16cArgs& a, const float* image, int64_t row, int64_t rows,
                                int64_t col, float* to) {
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  const int64_t left = low(high(-col, 0), a.copy_cols), right = high(left, low(w.in - col, a.copy_cols));
  for (int64_t c = 0; c < a.in; c += 16)
    for (int64_t r = 0; r < rows; ++r) {
      float* at = to + (c / 16 * a.copy_rows + r) * a.copy_cols * 16;
      const int64_t iy = row + r;
      if (iy < 0 || iy >= h.in) {
        fill_run(at, a.copy_cols * 16, 0.0f);
        continue;
      }
      fill_run(at, left * 16, 0.0f);
      copy_run(image + c * h.in * w.in + (iy * w.in + col + left) * 16, at + left * 16, (right - left) * 16);
      fill_run(at + right * 16, (a.copy_cols - right) * 16, 0.0f);
    }
}

// The positions of outputs [oy, oy + rows) × [ox, ox + cols): [c / 16][position][16].
static void copy_positions_of_blocks(const Nchw16cArgs& a, const float* image, int64_t oy, int64_t rows,
                                     int64_t ox, int64_t cols, float* to) {
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  for (int64_t c = 0; c < a.in; c += 16)
    for (int64_t r = 0; r < rows; ++r) {
      const float* from = image + c * h.in * w.in + ((oy + r) * h.stride * w.in + ox * w.stride) * 16;
      for (int64_t j = 0; j < cols; ++j, to += 16) store(to, load(from + j * w.stride * 16));
    }
}

// The positions [first, first + n) of planes: [c / 16][position][16].
static void copy_positions_of_planes(const Nchw16cArgs& a, const float* image, int64_t first, int64_t n,
                                     float* to) {
  alignas(64) float lines[16 * 16], part[16 * 16];
  const int64_t plane = a.axes[1].in * a.axes[2].in;
  for (int64_t c = 0; c < a.in; c += 16)
    for (int64_t j = 0; j < n; to += 16 * low(16, n - j), j += 16) {
      const float* from = image + c * plane + first + j;
      const int64_t left = n - j;
      if (left >= 16) {
        transpose16(from, plane, to, 16);
        continue;
      }
      for (int64_t i = 0; i < 16; ++i) store(lines + 16 * i, load_first(from + i * plane, left));
      transpose16(lines, 16, part, 16);
      for (int64_t i = 0; i < left; ++i) store(to + 16 * i, load(part + 16 * i));
    }
}

// A block of outputs, [oy, oy + rows) × [ox, ox + cols) of an image.
struct OutputBlock {
  int64_t image, oy, rows, ox, cols;
};
// The runs of positions in which its tiles go: `rows` of `cols`, `row_step` floats apart in x.
struct TileRuns {
  const float* x;
  int64_t rows, cols, row_step, plane;
};

// Where the tiles of a block read: in x, or in the copy, which is made unless it is there.
static TileRuns runs_of(const Nchw16cArgs& a, const OutputBlock& o, bool there, float* copy) {
  using Source = Nchw16cArgs::Source;
  const ConvAxis &h = a.axes[1], &w = a.axes[2];
  const float* x = a.x + o.image * a.in * h.in * w.in;
  switch (a.source) {
    case Source::in_place:
      return {x + o.oy * a.row_step + o.ox * a.step, o.rows, o.cols, a.row_step, a.plane};
    case Source::positions:
      if (!there && a.x_blocked) copy_positions_of_blocks(a, x, o.oy, o.rows, o.ox, o.cols, copy);
      if (!there && !a.x_blocked) copy_positions_of_planes(a, x, o.ox, o.cols, copy);
      // Whole rows follow each other in y too: one run.
      return o.cols == a.out_cols ? TileRuns{copy, 1, o.rows * o.cols, 0, o.rows * o.cols * 16}
                                  : TileRuns{copy, o.rows, o.cols, o.cols * 16, o.rows * o.cols * 16};
    case Source::rows:
      if (!there)
        copy_rows_of_blocks(a, x, o.oy * h.stride - h.begin,
                            (o.rows - 1) * h.stride + (h.kernel - 1) * h.dilation + 1,
                            o.ox * w.stride - w.begin, copy);
      break;
    case Source::plain_rows:
      if (!there) copy_block(a.axes, a.blocks, x, a.in, 0, o.oy, o.rows, o.ox, o.cols, 0.0f, copy);
      break;
  }
  return {copy, o.rows, o.cols, a.row_step, a.plane};
}

static void nchw16c(const Nchw16cArgs& a, int64_t begin, int64_t end, float* copy) {
  alignas(64) float sums[(kNchw16cRun + 16) * 16 * kNchw16cVectors];  // of a plain result
  alignas(64) float bias[16 * kNchw16cVectors];
  const Activation act = a.finish.act.activation;
  const bool simple = (act == Activation::identity || act == Activation::relu) && a.finish.scale == 1.0f &&
                      a.finish.shift == 0.0f && !(a.finish.residual && a.finish.residual_last);
  const TransposeOut transpose_out = transpose_out_of(act);
  const FinishBlocks finish_blocks = finish_blocks_of(act);
  if (!a.y_blocked)
    for (int64_t i = 0; i < (kNchw16cRun + 16) * kNchw16cVectors; ++i) store(sums + 16 * i, set1(0.0f));
  const int64_t groups = a.groups(), blocks = a.channel_blocks(), positions = a.out_rows * a.out_cols;
  Nchw16cTile t{a.offsets,
                a.step,
                a.plane,
                a.k,
                16,
                positions * 16,
                0,
                a.y_blocked && simple,
                act == Activation::relu ? 0.0f : -__builtin_inff()};
  const TileStep step = !a.offsets     ? TileStep::points
                        : a.step == 1  ? TileStep::one
                        : a.step == 32 ? TileStep::pairs
                                       : TileStep::any;
  int64_t held = -1;  // the block whose copy is there
  for (int64_t item = begin; item < end; ++item) {
    const int64_t split = item % a.splits, block = item / a.splits;
    const int64_t col_block = block % a.col_blocks, row_block = block / a.col_blocks % a.row_blocks;
    const int64_t image = block / a.col_blocks / a.row_blocks;
    const int64_t oy = row_block * a.rows, ox = col_block * a.cols;
    const int64_t rows = low(a.rows, a.out_rows - oy), cols = low(a.cols, a.out_cols - ox);
    const TileRuns x = runs_of(a, {image, oy, rows, ox, cols}, block == held, copy);
    t.plane = x.plane;
    held = block;
    for (int64_t b = blocks * split / a.splits; b < blocks * (split + 1) / a.splits; ++b) {
      const GroupBlock g = group_block(groups, a.vectors, b);
      const int64_t channel = 16 * g.first, width = 16 * g.count;
      for (int64_t i = 0; i < width; ++i)
        bias[i] = a.finish.bias && channel + i < a.out ? a.finish.bias[channel + i] : 0.0f;
      const float* w = a.w + channel * a.k;
      const int64_t most = nchw16c_tile_rows(g.count), run = a.y_blocked ? x.cols : kNchw16cRun;
      for (int64_t r = 0; r < x.rows; ++r)
        for (int64_t at = 0; at < x.cols; at += run) {
          const int64_t n = low(run, x.cols - at), parts = (n + most - 1) / most;
          const int64_t first = (oy + r) * a.out_cols + ox + at;
          const int64_t to = image * a.out * positions + channel * positions + first * (a.y_blocked ? 16 : 1);
          const float* residual = a.finish.residual ? a.finish.residual + to : nullptr;
          if (!a.y_blocked) {
            t.to_position = width;
            t.to_vector = 16;
          }
          for (int64_t i = 0; i < parts; ++i) {
            const int64_t p = n * i / parts, tile_rows = n * (i + 1) / parts - p;
            float* y = a.y_blocked ? a.y + to + 16 * p : sums + width * p;
            const float* r16 = t.finish && residual ? residual + 16 * p : nullptr;
            const float* from = x.x + r * x.row_step + (at + p) * (a.offsets ? a.step : 16);
            // The first tiles bring a vector of each tap nearer, so that the lines do not come all at once.
            const bool opens = r == 0 && at == 0 && i < g.count;
            t.ahead = width * a.k + 16 * i;
            nchw16c_tile_of(step, opens, tile_rows, g.count)(t, from, w, bias, y, r16);
            if (a.y_blocked && !simple)
              for (int64_t v = 0; v < g.count; ++v)
                finish_blocks(a.finish, y + v * t.to_vector, tile_rows, y + v * t.to_vector,
                              residual ? residual + 16 * p + v * t.to_vector : nullptr);
          }
          if (!a.y_blocked)
            for (int64_t v = 0; v < g.count; ++v) {
              const int64_t c = channel + 16 * v, plane = to + 16 * v * positions;
              transpose_out(a.finish, {width, 0, 0, positions}, sums + 16 * v, 1, n,
                            a.out - c < 16 ? a.out - c : 16, a.y + plane,
                            residual ? a.finish.residual + plane : nullptr);
            }
        }
    }
  }
}

}  // namespace cyb::CYB_SIMD
#ifdef CYB_SIMD_TARGET
HWY_AFTER_NAMESPACE();
#endif
