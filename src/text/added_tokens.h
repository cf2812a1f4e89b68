// SPDX-License-Identifier: Apache-2.0
// Finds added tokens in a text: leftmost, the longest of those that start there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/tokenizer_spec.h"

namespace cyb {

// A stretch of text: an added token, or what lies between two.
struct TextPart {
  size_t begin, end;
  std::optional<uint32_t> token;
};

class AddedTokens {
 public:
  void add(const AddedToken& token, std::string_view content);
  bool empty() const { return tokens_.empty(); }

  // Cuts `text` (valid UTF-8). With parse_special = false special tokens stay text.
  std::vector<TextPart> split(std::string_view text, bool parse_special) const;

 private:
  // The longest content that starts at `pos`: its number, or -1.
  int match(std::string_view text, size_t pos, size_t* end) const;

  ByteTrie contents_;
  std::vector<AddedToken> tokens_;
};

}  // namespace cyb
