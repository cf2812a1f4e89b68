// SPDX-License-Identifier: Apache-2.0
// Layouts, sizes, and bytes that this program did not write: worked out by hand from docs/model-format.md, or
// made with numpy by tools/goldens/make_encodings.py.
#include "tensor/encoding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

#include "tensor/decode.h"
#include "tensor/encode_testing.h"

namespace cyb {
namespace {

using namespace testing;

std::string refusal(const TensorSpec& spec) {
  try {
    layout_of(spec);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::WeightFormat);
    return e.message();
  }
  ADD_FAILURE() << "not refused";
  return "";
}

TEST(Encoding, sizes_are_those_of_the_format) {
  EXPECT_EQ(encoded_size(spec_of(Encoding::q4, {13, 56}, 8)), 576u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {13, 56}, 8)), 1088u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {20, 40, 3, 3}, 8, {0, 2, 3, 1})), 14688u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {576, 576}, 8)), 352512u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {13, 56})), 13u * 2 * 34);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q4, {3, 13, 56}, 8)), 3u * 576);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {20, 40, 3, 3}, 0, {0, 2, 3, 1})), 20u * 9 * 2 * 34);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u16, {13, 5}, 8)), 16u * 5 * 2);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u32, {2, 9, 4}, 8)), 2u * 16 * 4 * 4);
  EXPECT_EQ(encoded_size(spec_of(Encoding::ternary, {9, 21})), 9u * 6);
  EXPECT_EQ(encoded_size(spec_of(Encoding::ternary, {9, 21}, 8)), 16u * 2 * 4);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u32, {})), 4u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u16, {})), 2u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u32, {0})), 0u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u32, {5, 0, 7})), 0u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::q8, {0, 64}, 8)), 0u);
  EXPECT_EQ(encoded_size(spec_of(Encoding::u32, {INT64_MAX, INT64_MAX, 0})), 0u);
  TensorSpec wide = spec_of(Encoding::u32, {3});
  wide.type = DType::i64;
  wide.words = 2;
  wide.frac_bits = 0;
  EXPECT_EQ(encoded_size(wide), 24u);
}

TEST(Encoding, combinations_outside_the_format_are_refused) {
  EXPECT_NE(refusal(spec_of(Encoding::q8, {4, 31})).find("at least 32"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::q4, {})).find("at least 32"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::q8, {20, 40, 3, 3}, 8)).find("rank 2 or 3"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u16, {64}, 8)).find("rank 2 or 3"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u16, {20, 40, 3}, 8, {0, 2, 1})).find("defined for q8 and q4"),
            std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::ternary, {20, 40, 3}, 8, {0, 2, 1})).find("defined for q8"),
            std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::q8, {8, 32}, 4)).find("only 8"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u32, {1, 1, 1, 1, 1, 1, 1, 1, 1})).find("rank 9"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u32, {-1})).find("negative"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u32, {1ll << 32, 1ll << 32})).find("too many"), std::string::npos);
  EXPECT_NE(refusal(spec_of(Encoding::u32, {INT64_MAX})).find("too many"), std::string::npos);
  for (const std::vector<int>& order : std::vector<std::vector<int>>{{0, 0}, {0}, {0, 2}, {-1, 0}, {0, 1, 2}})
    EXPECT_NE(refusal(spec_of(Encoding::u32, {3, 4}, 0, order)).find("order"), std::string::npos);
  auto with = [](TensorSpec s, auto&& change) {
    change(s);
    return s;
  };
  const TensorSpec q8 = spec_of(Encoding::q8, {8, 32}), u32 = spec_of(Encoding::u32, {8, 32});
  const TensorSpec u16 = spec_of(Encoding::u16, {8, 32}), ternary = spec_of(Encoding::ternary, {8, 32});
  const std::vector<TensorSpec> bad = {
      with(q8, [](auto& s) { s.frac_bits = 141; }),
      with(q8, [](auto& s) { s.frac_bits = -114; }),
      with(u32, [](auto& s) { s.frac_bits = 157; }),
      with(u32, [](auto& s) { s.frac_bits = -98; }),
      with(ternary, [](auto& s) { s.frac_bits = 1; }),
      with(q8, [](auto& s) { s.bits = true; }),
      with(u32, [](auto& s) { s.bits = true; }),  // frac_bits 16 beside bits
      with(u32, [](auto& s) { s.bits = true, s.frac_bits = 0, s.tile = 8; }),
      with(u32, [](auto& s) { s.words = 2; }),
      with(u32, [](auto& s) { s.zero = 128; }),
      with(q8, [](auto& s) { s.type = DType::u8, s.frac_bits = 0; }),  // needs zero = 128
      with(q8, [](auto& s) { s.type = DType::i8; }),                   // frac_bits must be 0
      with(q8, [](auto& s) { s.type = DType::i32, s.frac_bits = 0; }),
      with(u16, [](auto& s) { s.type = DType::i32, s.frac_bits = 0; }),
      with(u16, [](auto& s) { s.type = DType::u16, s.frac_bits = 0; }),
      with(u32, [](auto& s) { s.type = DType::boolean, s.frac_bits = 0; }),
      with(u32, [](auto& s) { s.type = DType::string, s.frac_bits = 0; }),
      with(u32, [](auto& s) { s.type = DType::i32, s.frac_bits = 0, s.words = 2; }),
      with(u32, [](auto& s) { s.type = DType::i64, s.frac_bits = 0, s.words = 2, s.tile = 8; }),
      with(u32, [](auto& s) { s.type = DType::i64, s.frac_bits = 0, s.words = 3; }),
  };
  for (size_t i = 0; i < bad.size(); i++) EXPECT_NE(refusal(bad[i]), "") << i;
}

TEST(Encoding, addenda_are_recognized) {
  EXPECT_FALSE(uses_addenda(spec_of(Encoding::q8, {8, 64})));
  EXPECT_FALSE(uses_addenda(spec_of(Encoding::u32, {7})));
  EXPECT_TRUE(uses_addenda(spec_of(Encoding::q8, {8, 64}, 8)));
  EXPECT_TRUE(uses_addenda(spec_of(Encoding::q8, {8, 56})));
  EXPECT_TRUE(uses_addenda(spec_of(Encoding::ternary, {8, 6})));
  TensorSpec s = spec_of(Encoding::u32, {7});
  s.frac_bits = 17;
  EXPECT_TRUE(uses_addenda(s));
}

// docs/model-format.md, "Encodings", line by line.
TEST(Encoding, hand_made_bytes_decode_to_their_values) {
  auto values = [](const TensorSpec& s, std::vector<uint8_t> bytes) { return decode(s, bytes); };
  EXPECT_EQ(values(spec_of(Encoding::u32, {2}), {0x00, 0x80, 0x01, 0x00, 0x00, 0x00, 0xff, 0xff}),
            (std::vector<float>{1.5f, -1.0f}));
  EXPECT_EQ(values(spec_of(Encoding::u16, {2}), {0x80, 0x01, 0x00, 0xff}), (std::vector<float>{1.5f, -1.0f}));
  EXPECT_EQ(values(spec_of(Encoding::ternary, {1, 6}), {0x01 | 0x02 << 2 | 0x01 << 6, 0x02 | 0x01 << 2}),
            (std::vector<float>{1, -1, 0, 1, -1, 1}));

  std::vector<uint8_t> q8(34, 0);
  q8[0] = 0x00, q8[1] = 0x02;  // scale 512/256 = 2
  q8[2] = 127, q8[3] = 0x81, q8[33] = 1;
  const std::vector<float> a = values(spec_of(Encoding::q8, {1, 32}), q8);
  EXPECT_EQ(a[0], 2.0f);
  EXPECT_EQ(a[1], -2.0f);
  EXPECT_EQ(a[2], 0.0f);
  EXPECT_EQ(a[31], static_cast<float>(512.0 / 127 / 256));

  std::vector<uint8_t> q4(18, 0x88);
  q4[0] = 0x00, q4[1] = 0xfe;  // scale −512/256 = −2
  q4[2] = 0xf0;                // value 0: nibble 0; value 16: nibble 15
  q4[17] = 0x9a;               // value 15: nibble 10; value 31: nibble 9
  const std::vector<float> b = values(spec_of(Encoding::q4, {1, 32}), q4);
  EXPECT_EQ(b[0], 2.0f);
  EXPECT_EQ(b[16], -1.75f);
  EXPECT_EQ(b[15], -0.5f);
  EXPECT_EQ(b[31], -0.25f);
  EXPECT_EQ(b[1], 0.0f);

  // Two rows of u16 in a tile: column by column, eight rows each.
  std::vector<uint8_t> tile(2 * 8 * 2, 0);
  tile[0] = 1, tile[2] = 2, tile[16] = 3, tile[18] = 4;
  TensorSpec t = spec_of(Encoding::u16, {2, 2}, 8);
  t.frac_bits = 0;
  EXPECT_EQ(values(t, tile), (std::vector<float>{1, 3, 2, 4}));

  TensorSpec bits = spec_of(Encoding::u32, {2});
  bits.bits = true;
  bits.frac_bits = 0;
  EXPECT_EQ(values(bits, {0, 0, 0x80, 0xff, 0, 0, 0x80, 0x3f}), (std::vector<float>{-INFINITY, 1.0f}));
}

float generate(uint64_t seed, uint64_t i, double scale) {
  uint64_t z = seed * 0x9E3779B97F4A7C15u + (i + 1) * 0xD1B54A32D192ED03u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  z ^= z >> 31;
  return static_cast<float>((static_cast<double>(z >> 40) - 8388608.0) * 0x1p-23 * scale);
}

template <class T>
std::vector<T> axes(const std::string& text) {
  std::vector<T> out;
  std::stringstream in(text);
  for (std::string part; text != "-" && std::getline(in, part, ',');)
    out.push_back(static_cast<T>(std::stoll(part)));
  return out;
}

TEST(Encoding, bytes_equal_those_that_numpy_made) {
  std::ifstream file(CYB_SOURCE_DIR "/tests/data/encodings/vectors.txt");
  int cases = 0;
  for (std::string line; std::getline(file, line); cases++) {
    std::stringstream in(line);
    std::string kind, shape, order, scale, hex;
    uint64_t seed;
    int tile, frac_bits;
    size_t size;
    in >> seed >> kind >> shape >> order >> tile >> scale >> frac_bits >> size >> hex;
    SCOPED_TRACE(line.substr(0, 60));
    TensorSpec s = spec_of(*parse_encoding(kind), axes<int64_t>(shape), tile, axes<int>(order));
    std::vector<uint8_t> expected(size);
    ASSERT_EQ(hex.size(), 2 * size);
    for (size_t i = 0; i < size; i++)
      expected[i] = static_cast<uint8_t>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
    std::vector<float> x(static_cast<size_t>(elements_of(s)));
    float most = 0;
    for (size_t i = 0; i < x.size(); i++) {
      x[i] = generate(seed, i, std::stod(scale));
      if (kind == "ternary") x[i] = std::fabs(x[i]) < 0.3f ? 0.0f : x[i] > 0 ? 1.0f : -1.0f;
      most = std::max(most, std::fabs(x[i]));
    }
    EncodeStats stats;
    EXPECT_EQ(encode_tensor(&s, x, &stats, Q4Scale::plain), expected);
    EXPECT_EQ(s.frac_bits, frac_bits);
    EXPECT_EQ(s.size, size);
    check_codes(s, expected);
    // Decoding places every value right: the error stays that of the encoding.
    const std::vector<float> back = decode(s, expected);
    const double bound = kind == "q8"        ? most / 250
                         : kind == "q4"      ? most / 7.9
                         : kind == "ternary" ? 0
                                             : most / 32000;
    for (size_t i = 0; i < x.size(); i++) ASSERT_LE(std::fabs(back[i] - x[i]), bound) << i;
    EXPECT_EQ(stats.values, static_cast<int64_t>(x.size()));
    EXPECT_LE(stats.max_error, bound);
  }
  EXPECT_EQ(cases, 17);
}

}  // namespace
}  // namespace cyb
