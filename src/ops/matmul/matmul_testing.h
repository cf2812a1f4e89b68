// SPDX-License-Identifier: Apache-2.0
// For the tests of matrix products: the kernel tables that this machine runs, random weights and activations.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <string>
#include <vector>

#include "ops/matmul/plan.h"

namespace cyb::matmul_testing {

inline constexpr int64_t kDepths[] = {1, 16, 31, 32, 33, 48, 56, 255, 256, 257, 300, 576, 1536};
inline constexpr int64_t kWidths[] = {1, 7, 8, 13, 16, 40, 64};
inline constexpr Encoding kEncodings[] = {Encoding::u32, Encoding::u16, Encoding::q8, Encoding::q4,
                                          Encoding::ternary};

// A table of kernels: vectors, and dot products of bytes.
struct Level {
  Isa isa;
  Dots dots = Dots::none;
};
using cyb::matmul_kernels;
inline const MatmulKernels& matmul_kernels(Level level) { return matmul_kernels(level.isa, level.dots); }
inline void matmul_run(ThreadPool& pool, const MatmulKernels& kernels, std::span<const MatmulArgs> products) {
  MatmulPlan(kernels, products, pool.threads()).run(pool);
}
using cyb::to_string;
inline const char* to_string(Level level) { return isa_name(level.isa, level.dots); }

inline std::vector<Level> vector_isas() {
  std::vector<Level> out;
  for (Level level : {Level{Isa::avx2}, Level{Isa::avx2, Dots::avxvnni}, Level{Isa::avx512},
                      Level{Isa::avx512, Dots::avx512vnni}, Level{Isa::avx512, Dots::amx}, Level{Isa::neon},
                      Level{Isa::neon, Dots::neon_dot}, Level{Isa::neon, Dots::neon_i8mm}})
    if (isa_runs_on(level.isa, detect_isa()) && dots_run(level.dots) &&
        matmul_kernels(level).isa == level.isa)
      out.push_back(level);
  return out;
}

struct Random {
  std::mt19937_64 bits;
  explicit Random(uint64_t seed) : bits(seed) {}
  uint64_t next() { return bits(); }
  float uniform() { return static_cast<float>(static_cast<int64_t>(bits() >> 40) - (1 << 23)) * 0x1p-23f; }
  float activation() { return bits() % 64 == 0 ? 0.0f : 2 * uniform(); }
};

// A random matrix row by row and tiled; the tiles' padding is garbage, which must not count.
struct Weights {
  std::vector<uint8_t> plain, tiles;
  std::vector<float> row_scale;
  WeightMatrix rows, tiled;
};
inline Weights make_weights(Encoding e, int64_t n, int64_t k, Random& random) {
  Weights w;
  w.plain.resize(weight_bytes(e, n, k, false));
  for (uint8_t& b : w.plain) {
    b = static_cast<uint8_t>(random.next());
    if (e == Encoding::ternary) b &= static_cast<uint8_t>(~((b & 0x55) << 1));  // no code 11
  }
  const int frac_bits = e == Encoding::u32 ? 31 : e == Encoding::ternary ? 0 : 15;
  w.rows = weight_matrix(e, w.plain.data(), n, k, frac_bits, false);
  w.tiles.resize(weight_bytes(e, n, k, true));
  w.tiled = w.rows;
  w.tiled.tiled = true;
  w.tiled.data = w.tiles.data();
  const int64_t groups = (n + 7) / 8;
  pack_tiles(w.rows, w.tiles.data(), 0, groups / 2);
  pack_tiles(w.rows, w.tiles.data(), groups / 2, groups);
  if (e == Encoding::ternary && random.next() % 3 != 0) {
    const bool one = random.next() % 2;
    for (int64_t i = 0; i < (one ? 1 : n); i++) w.row_scale.push_back(random.uniform() + 1.5f);
    for (WeightMatrix* m : {&w.rows, &w.tiled})
      m->row_scale = w.row_scale.data(), m->row_scale_stride = one ? 0 : 1;
  }
  return w;
}

inline std::vector<float> activations(int64_t m, int64_t ld, Random& random) {
  std::vector<float> x(static_cast<size_t>(m * ld));
  for (float& v : x) v = random.activation();
  return x;
}

inline std::vector<Q8Block> quantized(const MatmulKernels& kernels, const std::vector<float>& x, int64_t m,
                                      int64_t ld, int64_t k) {
  std::vector<Q8Block> out(static_cast<size_t>(m * q8_row_stride(k)));
  ThreadPool pool(1);
  quantize_rows(pool, kernels, x.data(), ld, m, k, out.data());
  return out;
}

inline void expect_same_bits(const std::vector<float>& got, const std::vector<float>& want,
                             const std::string& where) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); i++)
    ASSERT_EQ(std::bit_cast<uint32_t>(got[i]), std::bit_cast<uint32_t>(want[i]))
        << where << ": element " << i << " is " << got[i] << ", scalar " << want[i];
}

inline std::string name(Level isa, Encoding e, bool q8, int64_t m, int64_t n, int64_t k) {
  return std::string(to_string(isa)) + " " + to_string(e) + (q8 ? " q8 activations" : " f32 activations") +
         " M " + std::to_string(m) + " N " + std::to_string(n) + " K " + std::to_string(k);
}

}  // namespace cyb::matmul_testing
