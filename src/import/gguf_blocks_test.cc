// SPDX-License-Identifier: Apache-2.0
#include "import/gguf_blocks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace cyb {
namespace {

struct Golden {
  std::string source;
  std::vector<float> values;
};

Golden load(const std::string& name) {
  const std::string all = read_file(std::string(CYB_SOURCE_DIR) + "/tests/data/gguf/" + name + ".bin");
  uint32_t counts[2];
  std::memcpy(counts, all.data(), 8);
  Golden g;
  g.source = all.substr(8, counts[1]);
  g.values.resize(counts[0]);
  EXPECT_EQ(all.size(), 8 + counts[1] + counts[0] * sizeof(float));
  std::memcpy(g.values.data(), all.data() + 8 + counts[1], counts[0] * sizeof(float));
  return g;
}

const uint8_t* bytes(const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); }

struct Type {
  GgufType type;
  const char* name;
};
const Type kTypes[] = {{GgufType::F16, "F16"},       {GgufType::BF16, "BF16"},     {GgufType::Q4_0, "Q4_0"},
                       {GgufType::Q4_1, "Q4_1"},     {GgufType::Q5_0, "Q5_0"},     {GgufType::Q5_1, "Q5_1"},
                       {GgufType::Q8_0, "Q8_0"},     {GgufType::Q2_K, "Q2_K"},     {GgufType::Q3_K, "Q3_K"},
                       {GgufType::Q4_K, "Q4_K"},     {GgufType::Q5_K, "Q5_K"},     {GgufType::Q6_K, "Q6_K"},
                       {GgufType::IQ4_NL, "IQ4_NL"}, {GgufType::IQ4_XS, "IQ4_XS"}, {GgufType::TQ1_0, "TQ1_0"},
                       {GgufType::TQ2_0, "TQ2_0"},   {GgufType::MXFP4, "MXFP4"}};

TEST(GgufBlocks, EveryTypeDecodesToTheSameBitsAsTheReferencePackage) {
  for (const Type& t : kTypes) {
    const Golden g = load(t.name);
    std::vector<float> out(g.values.size());
    gguf_decode(t.type, bytes(g.source), static_cast<int64_t>(out.size()), out.data());
    for (size_t i = 0; i < out.size(); i++) {
      uint32_t a, b;
      std::memcpy(&a, &out[i], 4);
      std::memcpy(&b, &g.values[i], 4);
      ASSERT_EQ(a, b) << t.name << " value " << i << ": " << out[i] << " against " << g.values[i];
    }
  }
}

TEST(GgufBlocks, KeptIntegersTimesScaleAreTheDecodedValues) {
  for (const Type& t : kTypes) {
    const GgufGrid grid = gguf_grid(t.type);
    if (grid.kind == KeptGrid::none) continue;
    const Golden g = load(t.name);
    const auto n = static_cast<int64_t>(g.values.size());
    std::vector<int8_t> q(g.values.size());
    std::vector<float> d(g.values.size() / 32);
    gguf_integers(t.type, bytes(g.source), n, q.data(), d.data());
    const int limit = grid.kind == KeptGrid::q4 ? 8 : grid.kind == KeptGrid::ternary ? 2 : 128;
    for (int64_t i = 0; i < n; i++) {
      ASSERT_LE(std::abs(q[i]), limit);
      // In f64, product and quotient by a small factor round to the same f32 as the decoder's single product.
      const double exact = static_cast<double>(q[i]) * static_cast<double>(d[i / 32]) / grid.factor;
      ASSERT_EQ(static_cast<float>(exact), g.values[i]) << t.name << " value " << i;
    }
  }
}

TEST(GgufBlocks, InfinityAndNanOfHalvesSurvive) {
  const uint16_t halves[4] = {0x7c00, 0xfc00, 0x7e00, 0x3c00};
  float out[4];
  gguf_decode(GgufType::F16, reinterpret_cast<const uint8_t*>(halves), 4, out);
  EXPECT_EQ(out[0], INFINITY);
  EXPECT_EQ(out[1], -INFINITY);
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], 1.0f);
}

TEST(GgufBlocks, TypeWithoutDecoderIsAnErrorThatListsTheOthers) {
  float out[256];
  const std::vector<uint8_t> block(512);
  try {
    gguf_decode(GgufType::IQ2_XXS, block.data(), 256, out);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::WeightFormat);
    EXPECT_NE(e.message().find("IQ2_XXS"), std::string::npos);
    EXPECT_NE(e.advice().find("Q6_K"), std::string::npos);
  }
}

}  // namespace
}  // namespace cyb
