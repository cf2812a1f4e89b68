// SPDX-License-Identifier: Apache-2.0
// SentencePiece's precompiled character map ("Precompiled" normalizer): a double array from byte sequences to
// replacements, applied as the reference does: whole graphemes first, then single code points.
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
  explicit Charsmap(std::string_view table);
  void apply(NormalizedText* text) const;

 private:
  // The replacement of `text`, or false. As in the reference the shortest key that is a prefix decides.
  bool find(std::string_view text, std::string_view* replacement) const;

  std::vector<uint32_t> units_;
  std::string replacements_;  // each ended by a zero byte
};

// Throws Tokenizer if `text` is not base64.
std::string base64_decode(std::string_view text);
std::string base64_encode(std::string_view bytes);

}  // namespace cyb
