// SPDX-License-Identifier: Apache-2.0
// Encoded weights: rows looked up, tiles packed.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ops/matmul/matmul_testing.h"

namespace cyb {
namespace {

using namespace matmul_testing;

TEST(GatherRow, DecodesAsTheFormatDefinesIt) {
  Random random(9);
  for (Encoding e : kEncodings)
    for (int64_t k : kDepths) {
      const int64_t n = 13;
      const Weights w = make_weights(e, n, k, random);
      std::vector<float> plain(static_cast<size_t>(k)), tiled(plain.size());
      for (int64_t row : {0, 7, 8, 12}) {
        gather_row(w.rows, row, plain.data());
        gather_row(w.tiled, row, tiled.data());
        expect_same_bits(tiled, plain, name({Isa::scalar}, e, false, 1, n, k));
        for (int64_t i = 0; i < k; i++) {
          const uint8_t* p = w.plain.data();
          const int64_t block = row * ((k + 31) / 32) + i / 32;
          int16_t s = 0;
          double want = 0;
          if (e == Encoding::u32) {
            int32_t v;
            std::memcpy(&v, p + 4 * (row * k + i), 4);
            want = std::ldexp(v, -31);
          } else if (e == Encoding::u16) {
            std::memcpy(&s, p + 2 * (row * k + i), 2);
            want = std::ldexp(s, -15);
          } else if (e == Encoding::q8) {
            std::memcpy(&s, p + 34 * block, 2);
            want = std::ldexp(static_cast<int8_t>(p[34 * block + 2 + i % 32]) * s / 127.0, -15);
          } else if (e == Encoding::q4) {
            std::memcpy(&s, p + 18 * block, 2);
            const int byte = p[18 * block + 2 + i % 16];
            want = std::ldexp(((i % 32 < 16 ? byte & 15 : byte >> 4) - 8) * s / 8.0, -15);
          } else {
            const int code = p[row * ((k + 3) / 4) + i / 4] >> (2 * (i % 4)) & 3;
            want = code == 1 ? 1 : code == 2 ? -1 : 0;
          }
          float value = static_cast<float>(want);
          if (w.rows.row_scale) value *= w.row_scale[static_cast<size_t>(row * w.rows.row_scale_stride)];
          ASSERT_EQ(plain[static_cast<size_t>(i)], value)
              << to_string(e) << " K " << k << " row " << row << " at " << i;
        }
      }
    }
}

TEST(Tiles, SizesAreTheFormatsExamples) {
  EXPECT_EQ(weight_bytes(Encoding::q4, 13, 56, true), 576u);
  EXPECT_EQ(weight_bytes(Encoding::q8, 13, 56, true), 1088u);
  EXPECT_EQ(weight_bytes(Encoding::ternary, 13, 56, true), 2u * 8 * 4 * 4);
  EXPECT_EQ(weight_bytes(Encoding::ternary, 13, 56, false), 13u * 14);
}

}  // namespace
}  // namespace cyb
