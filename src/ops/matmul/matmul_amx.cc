// SPDX-License-Identifier: Apache-2.0
// AMX (Sapphire Rapids and later): integer products of 16 rows of activations with 16 rows of W by tiles.
// Each block of 32 columns has scales of its own, so a tile product covers one block, and its sums pass
// through memory to the f32 sums, two blocks behind, so that the tile unit and the vector units work at the
// same time.
#include "ops/matmul/simd_avx512-inl.h"
#include "ops/matmul/tables.h"
#include "ops/matmul/tiles_amx-inl.h"

namespace cyb {
namespace {

constexpr int64_t kTileRows16 = 16;

}  // namespace
}  // namespace cyb

#include "ops/matmul/codes_x86-inl.h"

namespace cyb {
namespace {

// sums = the products of one block: 16 rows of x and 16 rows of W, both signed.
inline void multiply_even(const Q8Block* x, int64_t row_bytes, const uint8_t* codes, int32_t* sums) {
  _tile_zero(0);
  _tile_loadd(2, x->q, row_bytes);
  _tile_loadd(4, codes, 64);
  _tile_dpbssd(0, 2, 4);
  _tile_stored(0, sums, 64);
}
inline void multiply_odd(const Q8Block* x, int64_t row_bytes, const uint8_t* codes, int32_t* sums) {
  _tile_zero(1);
  _tile_loadd(3, x->q, row_bytes);
  _tile_loadd(5, codes, 64);
  _tile_dpbssd(1, 3, 5);
  _tile_stored(1, sums, 64);
}

inline void sixteen_rows(int64_t blocks, const Q8Block* x, int64_t ldx, const uint8_t* codes,
                         const float* scales, float* total, bool first, const uint8_t* ahead) {
  constexpr int64_t kSums = 256;
  alignas(64) int32_t sums[4][kSums];
  const int64_t row_bytes = ldx * static_cast<int64_t>(sizeof(Q8Block));
  const auto even = [&](int64_t b) __attribute__((always_inline)) {
    __builtin_prefetch(ahead + 64 * b, 0, 2);
    multiply_even(x + b, row_bytes, codes + 512 * b, sums[b % 4]);
  };
  const auto odd = [&](int64_t b) __attribute__((always_inline)) {
    __builtin_prefetch(ahead + 64 * b, 0, 2);
    multiply_odd(x + b, row_bytes, codes + 512 * b, sums[b % 4]);
  };
  asm volatile("" ::: "memory");  // GCC's _tile_loadd does not say that it reads codes and x
  __m512 acc[16];
#pragma GCC unroll 16
  for (int m = 0; m < 16; m++) acc[m] = first ? _mm512_setzero_ps() : _mm512_load_ps(total + 16 * m);
  const auto add = [&](int64_t b) __attribute__((always_inline)) {
    const __m512 scale = _mm512_load_ps(scales + 16 * b);
    const int32_t* d = sums[b % 4];
#pragma GCC unroll 16
    for (int m = 0; m < 16; m++) {
      const __m512 sum = _mm512_cvtepi32_ps(_mm512_load_si512(d + 16 * m));
      acc[m] = _mm512_fmadd_ps(_mm512_mul_ps(sum, _mm512_set1_ps(x[b + m * ldx].scale)), scale, acc[m]);
    }
  };
  even(0);
  if (blocks > 1) odd(1);
  int64_t b = 0;
  for (; b + 4 <= blocks; b += 2) {
    even(b + 2);
    add(b);
    odd(b + 3);
    add(b + 1);
  }
  if (b + 2 < blocks) even(b + 2);  // up to three are left
  for (; b < blocks; b++) add(b);
#pragma GCC unroll 16
  for (int m = 0; m < 16; m++) _mm512_store_ps(total + 16 * m, acc[m]);
}

// ManyRows' policy: two groups of 8 rows of W, expanded to the 8 rows of a tile of codes.
template <class CODES>
struct Tiled {
  using Codes = CODES;
  static constexpr int64_t kLanes = 16, kBlockBytes = 512, kBlocksAtOnce = 24;
  static constexpr int kRows = 16;
  // Ranges of whole tiles only.
  static constexpr std::array<RowsTile, 16> tiles() {
    std::array<RowsTile, 16> t{};
    t[15] = sixteen_rows;
    return t;
  }
  // Tiles take signed codes as well, which need no sums of x.
  static void expand(const uint8_t* p, bool half, uint8_t* out, float* scale) {
    expand_codes<Codes, 64, Codes::kUp>(p, half, out, scale);
  }
};

template <class Codes>
void tile_products(const MatmulArgs& args, const MatmulRange& range) {
  const int64_t whole = range.row_begin + (range.row_end - range.row_begin) / kTileRows16 * kTileRows16;
  if (whole > range.row_begin) {
    const Tiles tiles;
    ManyRows<Tiled<Codes>>::run(args, {range.row_begin, whole, range.group_begin, range.group_end});
  }
  if (whole < range.row_end)
    q8_products_avx512vnni.q8_acts[static_cast<int>(args.w.encoding)](
        args, {whole, range.row_end, range.group_begin, range.group_end});
}

}  // namespace

const Q8Products q8_products_amx = {
    {nullptr, nullptr, tile_products<CodesQ8>, tile_products<CodesQ4>, tile_products<CodesTernary>}};

}  // namespace cyb
