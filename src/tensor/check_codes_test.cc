// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tensor/decode.h"
#include "tensor/encode_testing.h"

namespace cyb {
namespace {

using namespace testing;

TEST(CheckCodes, every_kind_of_bad_code_is_found) {
  auto broken = [](TensorSpec s, const std::vector<float>& x, size_t at, uint8_t value) {
    std::vector<uint8_t> bytes = encode_tensor(&s, x);
    check_codes(s, bytes);
    bytes[at] = value;
    return message_of([&] { check_codes(s, bytes); }, ErrorKind::InvalidFile);
  };
  const std::vector<float> x(3 * 40, 1.0f);
  EXPECT_NE(broken(spec_of(Encoding::q8, {3, 40}), x, 2, 0x80).find("−128"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q8, {3, 40}), x, 34 + 2 + 8, 1).find("last block"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q8, {3, 40}, 8), x, 2 * 3, 1).find("padding rows have a scale"),
            std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q8, {3, 40}, 8), x, 16 + 4 * 3, 1).find("padding rows are not zero"),
            std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q4, {3, 40}, 8), x, 16 + 4 * 3, 0).find("padding rows are not zero"),
            std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q4, {3, 40}), x, 18 + 2 + 8, 0).find("last block"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::q4, {3, 40}), x, 18 + 2, 0x08).find("last block"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::u16, {3, 40}, 8), x, 6, 1).find("padding rows"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::u32, {3, 40}, 8), x, 12, 1).find("padding rows"), std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::ternary, {3, 40}), x, 2, 0x03).find("forbidden"), std::string::npos);
  EXPECT_NE(
      broken(spec_of(Encoding::ternary, {3, 42}), std::vector<float>(126, 1.0f), 10, 0x55).find("padding"),
      std::string::npos);
  EXPECT_NE(broken(spec_of(Encoding::ternary, {3, 40}, 8), x, 12, 0x01).find("padding"), std::string::npos);
  TensorSpec flag = spec_of(Encoding::u16, {3});
  flag.type = DType::boolean;
  flag.frac_bits = 0;
  const std::vector<uint8_t> two = {2, 0, 0, 0, 0, 0};
  EXPECT_NE(message_of([&] { check_codes(flag, two); }, ErrorKind::InvalidFile).find("no value of type bool"),
            std::string::npos);
  EXPECT_NE(message_of([&] { decode(spec_of(Encoding::u32, {1ll << 40}), two); }).find("has 6 bytes"),
            std::string::npos);
}

}  // namespace
}  // namespace cyb
