// SPDX-License-Identifier: Apache-2.0
#include "import/encoding_choice.h"

#include <gtest/gtest.h>

namespace cyb {
namespace {

class FakeSource : public SourceTensor {
 public:
  FakeSource(std::vector<int64_t> shape, KeptGrid grid, bool half)
      : SourceTensor("t", std::move(shape), "fake", "t", 0), grid_(grid), half_(half) {}
  bool is_half() const override { return half_; }
  GgufGrid grid() const override { return {grid_, 1}; }
  void read(int64_t, int64_t, float*) const override {}
  void release(int64_t, int64_t) const override {}

 private:
  KeptGrid grid_;
  bool half_;
};

struct Case {
  std::vector<int64_t> shape;
  bool matrix = true, lookup = false, conv = false, half = false;
  KeptGrid grid = KeptGrid::none;
};
EncodingChoice choose(const Case& c, EncodingPolicy policy = EncodingPolicy::automatic,
                      bool canonical = false) {
  ir::WeightUse use;
  use.name = "t";
  use.matrix = c.matrix, use.lookup = c.lookup, use.conv = c.conv;
  return choose_encoding(use, FakeSource(c.shape, c.grid, c.half), {policy, canonical, 1000});
}

TEST(EncodingChoice, FollowsTheTable) {
  EXPECT_EQ(choose({{64, 64}}).spec.encoding, Encoding::q8);
  EXPECT_EQ(choose({{64, 64}}).spec.tile, 8);
  EXPECT_EQ(choose({{7, 64}}).spec.tile, 0);  // fewer than a group of rows
  EXPECT_EQ(choose({{64, 31}}).spec.encoding, Encoding::u32);
  EXPECT_EQ(choose({{64, 33}}).spec.encoding, Encoding::q8);     // a ragged last block
  EXPECT_EQ(choose({{4, 64, 64}}).spec.encoding, Encoding::q8);  // experts
  EXPECT_EQ(choose({{64, 64}, false}).spec.encoding, Encoding::u32);
  EXPECT_EQ(choose({{64}, false}).spec.encoding, Encoding::u32);
  EXPECT_EQ(choose({{}, false}).spec.encoding, Encoding::u32);
  const EncodingChoice q4 = choose({.shape = {64, 64}, .grid = KeptGrid::q4});
  EXPECT_EQ(q4.spec.encoding, Encoding::q4);
  EXPECT_TRUE(q4.keep_integers);
  const EncodingChoice q8 = choose({.shape = {64, 64}, .grid = KeptGrid::q8});
  EXPECT_EQ(q8.spec.encoding, Encoding::q8);
  EXPECT_TRUE(q8.keep_integers);
  EXPECT_TRUE(choose({.shape = {64, 64}, .grid = KeptGrid::ternary}).try_ternary);
  const Case conv = {.shape = {64, 32, 3}, .matrix = false, .conv = true, .half = true};
  EXPECT_TRUE(choose(conv).try_u16);
  EXPECT_FALSE(choose(conv, EncodingPolicy::u32).try_u16);
}

TEST(EncodingChoice, PoliciesDecideForMatricesOnly) {
  EXPECT_EQ(choose({{64, 64}}, EncodingPolicy::q4).spec.encoding, Encoding::q4);
  EXPECT_EQ(choose({.shape = {64, 64}, .lookup = true}, EncodingPolicy::q4).spec.encoding, Encoding::q8);
  EXPECT_EQ(choose({{1000, 64}}, EncodingPolicy::q4).spec.encoding, Encoding::q8);  // the head, by its rows
  EXPECT_EQ(choose({{64, 64}}, EncodingPolicy::u16).spec.encoding, Encoding::u16);
  EXPECT_EQ(choose({{64, 64}}, EncodingPolicy::u32).spec.encoding, Encoding::u32);
  EXPECT_EQ(choose({{64, 64}}, EncodingPolicy::u32).spec.tile, 8);
  EXPECT_EQ(choose({{64}, false}, EncodingPolicy::q4).spec.encoding, Encoding::u32);
  EXPECT_FALSE(choose({.shape = {64, 64}, .grid = KeptGrid::q8}, EncodingPolicy::q4).keep_integers);
  EXPECT_TRUE(choose({.shape = {64, 64}, .grid = KeptGrid::q4}, EncodingPolicy::q8).keep_integers);
  EXPECT_FALSE(choose({.shape = {64, 64}, .grid = KeptGrid::ternary}, EncodingPolicy::q8).try_ternary);
}

TEST(EncodingChoice, CanonicalHasNoAddenda) {
  for (const EncodingPolicy p : {EncodingPolicy::automatic, EncodingPolicy::q4, EncodingPolicy::canonical}) {
    EXPECT_EQ(choose({{64, 64}}, p, true).spec.tile, 0);
    EXPECT_EQ(choose({{64, 40}}, p, true).spec.encoding, Encoding::u16);
  }
  EXPECT_EQ(choose({{64, 64}, false}, EncodingPolicy::canonical, true).spec.encoding, Encoding::u16);
  EXPECT_EQ(choose({{64}, false}, EncodingPolicy::canonical, true).spec.encoding, Encoding::u32);
}

TEST(EncodingChoice, NamesReadBack) {
  for (const char* name : {"auto", "q4", "q8", "u16", "u32", "canonical"})
    EXPECT_STREQ(to_string(*parse_encoding_policy(name)), name);
  EXPECT_FALSE(parse_encoding_policy("q5"));
}

}  // namespace
}  // namespace cyb
