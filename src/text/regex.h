// SPDX-License-Identifier: Apache-2.0
// Regular expressions as tokenizer.json files write them (Oniguruma's Ruby syntax, full Unicode), run by
// PCRE2.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cyb {

// The same expression in PCRE2's syntax; Tokenizer error for constructs that have no equal there.
std::string regex_to_pcre2(std::string_view pattern);

class TextRegex {
 public:
  // Throws Tokenizer with the position if the pattern is wrong.
  explicit TextRegex(std::string_view pattern);
  ~TextRegex();
  TextRegex(TextRegex&&) noexcept;
  TextRegex& operator=(TextRegex&&) noexcept;

  using Match = std::pair<size_t, size_t>;  // begin, end in bytes
  // Appends all matches from left to right, empty ones included. `text` must be valid UTF-8. Safe to call
  // from many threads. Throws Tokenizer if the expression needs more steps or memory than allowed: never a
  // silent "no match".
  void find_all(std::string_view text, std::vector<Match>* matches) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cyb
