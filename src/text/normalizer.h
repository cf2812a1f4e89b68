// SPDX-License-Identifier: Apache-2.0
// The normalizer of a tokenizer: a list of steps that rewrite the text before it is cut.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/alignment.h"
#include "text/tokenizer_spec.h"

namespace cyb {

// A text, and whether its first character still is the first of what was given in (Metaspace asks).
struct NormalizedText {
  std::string text;
  bool at_start = true;
  Alignment* from = nullptr;  // of `text`, where it is asked for
};

class Normalizer {
 public:
  Normalizer() = default;
  // Tokenizer error on a kind of step that is not known, naming it.
  explicit Normalizer(const std::vector<TokenizerStep>& steps);

  bool empty() const { return steps_.empty(); }
  void apply(NormalizedText* text) const;

 private:
  std::vector<std::function<void(NormalizedText*)>> steps_;
};

// The printable stand-in of each byte in byte-level vocabularies ("Ġ" for a space), and back.
const char32_t* byte_level_characters();  // 256 code points, all below 0x180
int byte_level_byte(char32_t c);          // -1: none
std::string byte_level_encode(std::string_view bytes, AlignmentWriter* places = nullptr);

}  // namespace cyb
