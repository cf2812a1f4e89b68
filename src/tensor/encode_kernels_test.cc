// SPDX-License-Identifier: Apache-2.0
#include "tensor/encode_kernels.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tensor/encode_testing.h"

namespace cyb {
namespace {

using namespace testing;

TEST(EncodeKernels, every_instruction_set_gives_the_same_bits) {
#if defined(__x86_64__)
  if (&encode_kernels::table() == &encode_kernels::kBaseline) GTEST_SKIP() << "no AVX2 here";
  const encode_kernels::Table& a = encode_kernels::kBaseline;
  const encode_kernels::Table& b = encode_kernels::kAvx2;
  std::mt19937 random(23);
  for (int which = 0; which < kHard; which++) {
    const std::vector<float> x = hard_values(which, 32 * 40, random);
    ASSERT_EQ(a.max_bits(x.data(), 32 * 40 - 3), b.max_bits(x.data(), 32 * 40 - 3));
    const double m = max_magnitude(x, "t");
    for (const int mode : {0, 1, 2, 3}) {
      int16_t scales[2][40] = {};
      int8_t quants[2][32 * 40] = {};
      int32_t fixed[2][32 * 40] = {};
      encode_kernels::Errors errors[2];
      for (int k = 0; k < 2; k++) {
        const encode_kernels::Table& t = k ? b : a;
        const int f = choose_frac_bits(mode == 3 ? Encoding::u32 : Encoding::q8, m);
        if (mode == 0) t.q8(x.data(), 40, f, scales[k], quants[k], &errors[k]);
        if (mode == 1 || mode == 2) t.q4(x.data(), 40, f, mode == 2, scales[k], quants[k], &errors[k]);
        if (mode == 3) t.fixed(x.data(), 32 * 40 - 3, f, fixed[k], &errors[k]);
      }
      ASSERT_EQ(0, std::memcmp(scales[0], scales[1], sizeof scales[0]));
      ASSERT_EQ(0, std::memcmp(quants[0], quants[1], sizeof quants[0]));
      ASSERT_EQ(0, std::memcmp(fixed[0], fixed[1], sizeof fixed[0]));
      ASSERT_EQ(0, std::memcmp(&errors[0], &errors[1], sizeof errors[0]));
    }
  }
#endif
}

}  // namespace
}  // namespace cyb
