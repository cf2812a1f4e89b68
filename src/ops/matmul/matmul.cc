// SPDX-License-Identifier: Apache-2.0
// Choosing kernels and sharing a product among threads.
#include "ops/matmul/matmul.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/checked.h"
#include "ops/matmul/plan.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {

constexpr int64_t kUnit = 6;      // groups that stay together: the widest panel
constexpr int64_t kLowUnit = 4;   // the same where that shares out better
constexpr int64_t kLongRows = 9;  // from so many rows on, tiles are long
constexpr int64_t kRows = 24;     // rows that stay together: a multiple of every tile's height
constexpr int64_t kRowsQ8 = 48;   // likewise, of 8-bit activations
constexpr int64_t kManyRows = 64, kRowBlocks = 512;

// A block of rows of 8-bit x stays in L2 while the weights pass by.
int64_t rows_that_fit(int64_t row_bytes) {
  return std::clamp<int64_t>((256 << 10) / std::max<int64_t>(row_bytes, 1) / kRowsQ8 * kRowsQ8, kRowsQ8, 192);
}

MatmulCut cut(int64_t m, int64_t n, int64_t most_rows, int64_t together, int64_t group_bytes, int64_t batch,
              int threads, bool one_by_one) {
  MatmulCut c;
  const int64_t groups = ceil_div<int64_t>(n, 8);
  c.rows = std::min(m, most_rows);
  c.row_tiles = ceil_div(m, std::max<int64_t>(c.rows, 1));
  if (c.row_tiles > 0) c.rows = round_up<int64_t>(ceil_div(m, c.row_tiles), m < 12 ? 1 : together);
  // Some tiles a thread for balance, but each worth handing out: 16 KB of weights, or many rows.
  const int64_t wanted = ceil_div<int64_t>(int64_t{threads} * (m >= kLongRows ? 32 : 8),
                                           std::max<int64_t>(c.row_tiles * batch, 1));
  const int64_t least =
      ceil_div<int64_t>(16 << 10, std::max<int64_t>(group_bytes * std::min<int64_t>(m, 16), 1));
  // Of panels that are few, lower ones may leave no thread without work at the end.
  const auto rounds = [&](int64_t unit) {
    return ceil_div(ceil_div(groups, unit) * c.row_tiles * batch, int64_t{threads}) * unit;
  };
  const int64_t unit = one_by_one ? 1 : rounds(kLowUnit) < rounds(kUnit) * 15 / 16 ? kLowUnit : kUnit;
  c.groups = round_up(std::max<int64_t>({groups / wanted, least, 1}), unit);
  c.group_tiles = ceil_div(groups, c.groups);
  // Of nearly one width: a last one of a group or two would cost a round of its own.
  if (c.group_tiles > 1) c.groups = round_up(ceil_div(groups, c.group_tiles), unit);
  c.group_tiles = ceil_div(groups, c.groups);
  return c;
}

MatmulRange tile_range(const MatmulCut& c, int64_t m, int64_t n, int64_t tile) {
  const int64_t r = tile / c.group_tiles, g = tile % c.group_tiles;
  return {r * c.rows, std::min((r + 1) * c.rows, m), g * c.groups,
          std::min((g + 1) * c.groups, ceil_div<int64_t>(n, 8))};
}

// f(tile) for all tiles.
template <class F>
void each_tile(ThreadPool& pool, int64_t tiles, F&& f) {
  pool.parallel_for(tiles, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t t = begin; t < end; t++) f(t, thread);
  });
}

}  // namespace

WeightMatrix weight_matrix(Encoding encoding, const void* data, int64_t n, int64_t k, int frac_bits,
                           bool tiled) {
  WeightMatrix w;
  w.data = static_cast<const uint8_t*>(data);
  w.n = n;
  w.k = k;
  w.encoding = encoding;
  w.tiled = tiled;
  w.frac_bits = frac_bits;
  // Two factors, so that no frac_bits makes a subnormal one.
  const int near = std::clamp(frac_bits, -113, 112);
  const float divisor = encoding == Encoding::q8 ? 127.0f : encoding == Encoding::q4 ? 8.0f : 1.0f;
  w.factor = std::ldexp(1.0f / divisor, -near);
  w.factor2 = std::ldexp(1.0f, near - frac_bits);
  return w;
}

namespace {

[[maybe_unused]] MatmulKernels with(const MatmulKernels& kernels, const Q8Products& products) {
  MatmulKernels k = kernels;
  std::copy(std::begin(products.q8_acts), std::end(products.q8_acts), k.q8_acts);
  return k;
}

}  // namespace

const MatmulKernels& matmul_kernels(Isa isa) { return matmul_kernels(isa, detect_dots()); }

const MatmulKernels& matmul_kernels(Isa isa, Dots dots) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::avx2: {
      static const MatmulKernels vnni = with(matmul_kernels_avx2, q8_products_avxvnni);
      return dots == Dots::avxvnni ? vnni : matmul_kernels_avx2;
    }
    case Isa::avx512: {
      static const MatmulKernels vnni = with(matmul_kernels_avx512, q8_products_avx512vnni),
                                 amx = with(matmul_kernels_avx512, q8_products_amx);
      return dots == Dots::amx ? amx : dots == Dots::avx512vnni ? vnni : matmul_kernels_avx512;
    }
#elif defined(__aarch64__)
    case Isa::neon: {
      static const MatmulKernels dot = with(matmul_kernels_neon, q8_products_neon_dot),
                                 i8mm = with(matmul_kernels_neon, q8_products_neon_i8mm);
      return dots == Dots::neon_i8mm ? i8mm : dots == Dots::neon_dot ? dot : matmul_kernels_neon;
    }
#endif
    default:
      return matmul_kernels_scalar;
  }
}

bool q8_acts_pay(Isa isa, Dots dots, Encoding encoding) {
  return !(isa == Isa::avx512 && dots == Dots::none && encoding == Encoding::q8);
}

void matmul_range(const MatmulKernels& kernels, const MatmulArgs& args, const MatmulRange& range) {
  const MatmulKernels& k = args.w.tiled ? kernels : matmul_kernels_scalar;
  const int e = static_cast<int>(args.w.encoding);
  (args.xq && k.q8_acts[e] ? k.q8_acts : k.f32_acts)[e](args, range);
  if (args.activation == Activation::identity) return;
  // While what was just written is near.
  const int64_t begin = range.group_begin * 8, end = std::min(range.group_end * 8, args.w.n);
  const auto activate = activation_kernels(kernels.isa).activate;
  for (int64_t m = range.row_begin; m < range.row_end; m++) {
    float* y = args.y + m * args.ldy;
    activate({.activation = args.activation, .x = y, .y = y}, begin, end);
  }
}

MatmulPlan::MatmulPlan(const MatmulKernels& kernels, std::span<const MatmulArgs> products, int threads,
                       int64_t xq_copy)
    : kernels_(&kernels), count_(products.size()), own_(xq_copy != 0) {
  for (int thread = 0; thread < (own_ ? threads : 1); thread++)
    for (const MatmulArgs& product : products) {
      MatmulArgs a = product;
      if (a.xq)
        a.xq = reinterpret_cast<const Q8Block*>(reinterpret_cast<const uint8_t*>(a.xq) + thread * xq_copy);
      const int64_t groups = std::max<int64_t>(ceil_div<int64_t>(a.w.n, 8), 1);
      const int64_t most = a.xq ? rows_that_fit(q8_row_stride(a.w.k) * int64_t{sizeof(Q8Block)}) : kPanelRows;
      const MatmulCut c =
          cut(a.m, a.w.n, most, a.xq ? kRowsQ8 : kRows,
              static_cast<int64_t>(weight_bytes(a.w.encoding, a.w.n, a.w.k, a.w.tiled)) / groups, 1, threads,
              a.xq && a.m <= kFewRows);
      if (thread == 0) tiles_ += c.tiles();
      products_.push_back({a, c});
    }
}

void MatmulPlan::run(ThreadPool& pool) const {
  each_tile(pool, tiles_, [this](int64_t tile, int thread) {
    const Product* p = products_.data() + (own_ ? static_cast<size_t>(thread) * count_ : 0);
    for (; tile >= p->cut.tiles(); p++) tile -= p->cut.tiles();
    matmul_range(*kernels_, p->args, tile_range(p->cut, p->args.m, p->args.w.n, tile));
  });
}

void dense_run(ThreadPool& pool, const MatmulKernels& kernels, const DenseArgs& args) {
  const int64_t batches = args.batch[0] * args.batch[1];
  const MatmulCut c = cut(args.m, args.n, kPanelRows, kRows, args.k * 32, batches, pool.threads(), false);
  if (c.tiles() == 0) return;
  each_tile(pool, batches * c.tiles(), [&](int64_t t, int) {
    kernels.dense(args, t / c.tiles(), tile_range(c, args.m, args.n, t % c.tiles()));
  });
}

void quantize_rows(ThreadPool& pool, const MatmulKernels& kernels, const float* x, int64_t ldx, int64_t m,
                   int64_t k, Q8Block* out) {
  const int64_t ld = q8_row_stride(k), blocks = ceil_div<int64_t>(k, 32);
  // Tiles that moved to another thread read some of the rows there, and each store to such a line waits for
  // it: so rows are put together near by and written in whole lines.
  const bool apart = pool.threads() > 1 && m >= kManyRows && ld <= kRowBlocks;
  pool.parallel_for(m, std::max<int64_t>(1, 8192 / std::max<int64_t>(k, 1)),
                    [&](int64_t begin, int64_t end, int) {
                      Q8Block row[kRowBlocks];
                      for (int64_t i = begin; i < end; i++) {
                        kernels.quantize_row(x + i * ldx, k, apart ? row : out + i * ld);
                        if (apart) std::copy_n(row, blocks, out + i * ld);
                      }
                    });
}

}  // namespace cyb
