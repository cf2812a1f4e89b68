// SPDX-License-Identifier: Apache-2.0
#include "base/utf8_check.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "base/cpu_features.h"

namespace cyb {
namespace {

void same(const std::string& text, bool expected) {
  EXPECT_EQ(is_utf8_plain(text), expected) << testing::PrintToString(text);
  EXPECT_EQ(is_utf8(text), expected) << testing::PrintToString(text);
#if defined(__x86_64__)
  if (isa_runs_on(Isa::avx2, detect_isa())) {
    EXPECT_EQ(is_utf8_avx2(text), expected) << testing::PrintToString(text);
  }
#endif
}

struct Sample {
  std::string bytes;
  bool valid;
};

const std::vector<Sample>& samples() {
  static const std::vector<Sample> all = {
      {"a", true},
      {"\x7f", true},
      {"\xC2\x80", true},
      {"\xDF\xBF", true},
      {"\xE0\xA0\x80", true},
      {"\xED\x9F\xBF", true},
      {"\xEE\x80\x80", true},
      {"\xEF\xBF\xBF", true},
      {"\xF0\x90\x80\x80", true},
      {"\xF4\x8F\xBF\xBF", true},
      {"\x80", false},
      {"\xBF", false},
      {"\xC0\x80", false},
      {"\xC1\xBF", false},
      {"\xC2", false},
      {"\xC2\x41", false},
      {"\xC2\x80\x80", false},
      {"\xE0\x9F\xBF", false},
      {"\xE0\xA0", false},
      {"\xE1\x80\x41", false},
      {"\xED\xA0\x80", false},
      {"\xED\xBF\xBF", false},
      {"\xF0\x8F\xBF\xBF", false},
      {"\xF0\x90\x80", false},
      {"\xF0\x90\x80\x41", false},
      {"\xF4\x90\x80\x80", false},
      {"\xF5\x80\x80\x80", false},
      {"\xF8\x80\x80\x80\x80", false},
      {"\xFE", false},
      {"\xFF", false},
  };
  return all;
}

TEST(Utf8Check, EveryFaultAtEveryPlace) {
  for (const Sample& s : samples())
    for (const std::string& around : {std::string("x"), std::string("é"), std::string("😀")})
      for (size_t before : {0u, 1u, 13u, 29u, 30u, 31u, 32u, 33u, 61u, 62u, 63u, 64u, 65u})
        for (size_t after : {0u, 1u, 31u, 32u, 40u, 64u}) {
          std::string text;
          while (text.size() < before) text += text.size() + around.size() <= before ? around : "y";
          text += s.bytes;
          for (size_t i = 0; i < after; i++) text += around;
          same(text, s.valid);
        }
}

// Random texts, then the same with one byte changed: the vector code must agree with the plain one.
TEST(Utf8Check, AgreesOnDamagedTexts) {
  std::mt19937 random(7);
  const auto& all = samples();
  for (int round = 0; round < 3000; round++) {
    std::string text;
    while (text.size() < random() % 200) text += all[random() % 10].bytes;
    same(text, true);
    if (text.empty()) continue;
    text[random() % text.size()] = static_cast<char>(random());
    same(text, is_utf8_plain(text));
  }
}

}  // namespace
}  // namespace cyb
