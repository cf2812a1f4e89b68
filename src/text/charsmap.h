// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled character map ("Precompiled" normalizer): a double array from byte sequences to
// replacements, applied as tokenizer.json's reference does (whole graphemes, then
// single code points, the shortest key decides) or as SentencePiece does (the longest key at each place).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizer.h"

namespace cyb {

class Charsmap {
 public:
  // Throws Tokenizer if the table is damaged.
  explicit Charsmap(std::string_view table, bool longest = false);
  void apply(NormalizedText* text) const;

 private:
  // The length of the key at the start of `text` and its replacement, or 0.
  size_t find(std::string_view text, std::string_view* replacement) const;

  bool longest_;
  std::vector<uint32_t> units_;
  std::string replacements_;  // each ended by a zero byte
};

// Throws Tokenizer if `text` is not base64.
std::string base64_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

}  // namespace cyb
