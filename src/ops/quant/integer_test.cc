// SPDX-License-Identifier: Apache-2.0
// Every instruction set's tile of integer products beside plain sums.
#include "ops/quant/integer.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "base/dot_products.h"

namespace cyb {
namespace {

struct Level {
  Isa isa;
  Dots dots;
};

TEST(IntegerProducts, TilesAreExact) {
  std::mt19937 random(7);
  // Random bytes, and the extremes, whose pairs of products 16 bits do not hold.
  const auto one_of = [&](uint8_t a, uint8_t b) { return random() % 2 ? a : b; };
  for (const Level level : {Level{Isa::scalar, Dots::none}, Level{Isa::avx2, Dots::none},
                            Level{Isa::avx512, Dots::none}, Level{Isa::avx512, Dots::avx512vnni}}) {
    if (!isa_runs_on(level.isa, detect_isa()) || !dots_run(level.dots)) continue;
    const IntKernels& kernels = int_kernels(level.isa, level.dots);
    for (const int64_t groups : {1, 2, 9, 40})
      for (int rows = 1; rows <= kIntRows; rows++)
        for (const bool extreme : {false, true}) {
          const int64_t stride = 4 * groups;
          std::vector<uint8_t> a(static_cast<size_t>(rows * stride));
          std::vector<int8_t> panel(static_cast<size_t>(groups * kIntColumns * 4));
          for (uint8_t& v : a) v = extreme ? one_of(0xff, 0x80) : static_cast<uint8_t>(random());
          for (int8_t& v : panel)
            v = static_cast<int8_t>(extreme ? one_of(0x7f, 0x80) : static_cast<uint8_t>(random()));
          std::vector<int32_t> sums(kIntRows * kIntColumns, -1), want = sums;
          for (int i = 0; i < rows; i++)
            for (int j = 0; j < kIntColumns; j++) {
              int32_t sum = 0;
              for (int64_t k = 0; k < stride; k++)
                sum += a[static_cast<size_t>(i * stride + k)] *
                       panel[static_cast<size_t>((k / 4 * kIntColumns + j) * 4 + k % 4)];
              want[static_cast<size_t>(i * kIntColumns + j)] = sum;
            }
          kernels.tile(a.data(), stride, rows, panel.data(), groups, sums.data());
          EXPECT_EQ(sums, want) << isa_name(level.isa, level.dots) << ", " << rows << " rows, " << groups
                                << " groups";
        }
  }
}

}  // namespace
}  // namespace cyb
