// SPDX-License-Identifier: Apache-2.0
// AVX-512 VNNI: integer products of two groups of 8 rows of W with up to twelve rows of activations.
#include "ops/matmul/simd_avx512-inl.h"
#include "ops/matmul/tables.h"

namespace cyb {
namespace {
inline VI dot4(VI sum, VI u8, VI i8) { return _mm256_dpbusd_epi32(sum, u8, i8); }
}  // namespace
}  // namespace cyb

#include "ops/matmul/finish_wide-inl.h"
#include "ops/matmul/q8-inl.h"
#include "ops/matmul/vnni-inl.h"

namespace cyb {
namespace {

inline __m512i join(VI a, VI b) { return _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1); }

// Two groups of 8 rows of W. Pieces of codes of a block of each, made where they are needed: that hides
// behind the products, and nothing is gained by expanding them once for many rows (measured).
template <class Codes>
struct Pair;

template <>
struct Pair<CodesQ8> {
  template <class F>
  static CYB_INLINE void each(const uint8_t* p, const uint8_t* q, F&& f) {
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
      f(j,
        _mm512_xor_si512(join(vi_load(p + 16 + 32 * j), vi_load(q + 16 + 32 * j)), _mm512_set1_epi8(-128)));
  }
};

template <>
struct Pair<CodesQ4> {
  template <class F>
  static CYB_INLINE void each(const uint8_t* p, const uint8_t* q, F&& f) {
    const __m512i mask = _mm512_set1_epi8(15);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) {
      const __m512i w = join(vi_load(p + 16 + 32 * j), vi_load(q + 16 + 32 * j));
      f(j, _mm512_and_si512(w, mask));
      f(4 + j, _mm512_and_si512(_mm512_srli_epi16(w, 4), mask));
    }
  }
};

template <class Codes, int ROWS>
void pair_tile(const MatmulArgs& args, int64_t row, int64_t group) {
  const int64_t blocks = (args.w.k + 31) / 32;
  const uint8_t *p = args.w.data + group * blocks * Codes::kBytes, *q = p + blocks * Codes::kBytes;
  RowBlocks<ROWS> x(args.xq + row * args.ldxq, args.ldxq);
  const auto next_rows = ROWS * args.ldxq * static_cast<int64_t>(sizeof(Q8Block));
  __m512 acc[ROWS];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) acc[m] = _mm512_setzero_ps();
  for (int64_t b = 0; b < blocks; b++, p += Codes::kBytes, q += Codes::kBytes) {
    __m512i d[ROWS];
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) d[m] = _mm512_set1_epi32(Codes::offset(x[m]));
    Pair<Codes>::each(
        p, q, [&](int j, __m512i w) __attribute__((always_inline)) {
#pragma GCC unroll 12
          for (int m = 0; m < ROWS; m++)
            d[m] = _mm512_dpbusd_epi32(d[m], w, _mm512_set1_epi32(four_bytes(x[m].q + 4 * j)));
        });
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) __builtin_prefetch(reinterpret_cast<const char*>(x.at[m]) + next_rows);
    const __m512 scale = _mm512_cvtepi32_ps(_mm512_cvtepi16_epi32(
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)), 1)));
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++)
      acc[m] =
          _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(d[m]), _mm512_set1_ps(x[m].scale)), scale, acc[m]);
    x.next();
  }
  const int64_t column = group * 8;
  if (column + 16 <= args.w.n && !args.w.row_scale) {  // finish() from registers
    const FinishWide last(args);
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; m++) last(acc[m], column, args.y + (row + m) * args.ldy + column);
    return;
  }
  alignas(64) float total[ROWS * 16];
#pragma GCC unroll 12
  for (int m = 0; m < ROWS; m++) _mm512_store_ps(total + 16 * m, acc[m]);
  for (int g = 0; g < 2; g++) finish(args, row, ROWS, column + 8 * g, total + 8 * g, 16);
}

using PairTile = void (*)(const MatmulArgs&, int64_t, int64_t);
template <class Codes, int... ROWS>
constexpr std::array<PairTile, sizeof...(ROWS)> pair_tiles(std::integer_sequence<int, ROWS...>) {
  return {pair_tile<Codes, ROWS + 1>...};
}

template <class Codes, template <int> class Dot>
struct Pairs {
  static void run(const MatmulArgs& args, const MatmulRange& range) {
    constexpr auto kTiles = pair_tiles<Codes>(std::make_integer_sequence<int, 12>());
    int64_t group = range.group_begin;
    for (; group + 2 <= range.group_end; group += 2)
      even_tiles<12>(range.row_begin, range.row_end, [&](int64_t row, int64_t rows) {
        kTiles[static_cast<size_t>(rows - 1)](args, row, group);
      });
    if (group < range.group_end)
      for (int64_t row = range.row_begin; row < range.row_end; row += 4)
        few_rows<Codes, Dot>(args, {row, min64(row + 4, range.row_end), group, group + 1}, 0);
  }
};

struct SumWide {
  static __m512i first(__m512i w, __m512i x, int32_t offset) { return add(_mm512_set1_epi32(offset), w, x); }
  static __m512i add(__m512i sum, __m512i w, __m512i x) { return _mm512_dpbusd_epi32(sum, w, x); }
  static __m512i get(__m512i sum, int32_t) { return sum; }
};

}  // namespace

// Ternary codes are worth expanding once.
const Q8Products q8_products_avx512vnni = {
    {nullptr, nullptr, q8_products<CodesQ8, DotQ8, Pairs<CodesQ8, DotQ8>>,
     q8_products<CodesQ4, DotQ4, Pairs<CodesQ4, DotQ4>>,
     q8_products<CodesTernary, DotTernary, ManyRows<Expanded<Lanes16, CodesTernary, SumWide, 12>>>}};

}  // namespace cyb
