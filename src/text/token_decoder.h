// SPDX-License-Identifier: Apache-2.0
// From tokens back to text: the decoder steps of a tokenizer, run one token at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"

namespace cyb {

class TokenDecoder {
 public:
  TokenDecoder() = default;
  // Tokenizer error on a kind of step that is not known or that cannot be run token by token.
  explicit TokenDecoder(const std::vector<TokenizerStep>& steps);

  // Where a stream of tokens stands.
  struct State {
    bool first = true;       // no token came yet
    size_t strip_left = 0;   // characters that may still be stripped from the start of the text
    std::string bytes;       // of byte tokens, not yet a whole character
    std::string held;        // text that a later token may change or complete
    size_t held_suffix = 0;  // of `held`, bytes at the end that vanish if nothing follows
  };
  // `continues`: the text goes on from an earlier one, so the rules for the first token do not apply.
  State start(bool continues) const;

  // The text that is certain after one more token. `added`: an added token, whose text is itself.
  std::string push(State* state, std::string_view token, bool added) const;
  // What is still held; an incomplete character becomes U+FFFD.
  std::string finish(State* state) const;

 private:
  enum class Kind { replace, byte_fallback, byte_level, metaspace, wordpiece, bpe, strip };
  struct Step {
    Kind kind;
    std::string from, to;
    bool flag = false;  // metaspace: the first token loses its mark; wordpiece: cleanup
    size_t left = 0, right = 0;
  };
  std::string token_text(State* state, std::string_view token, bool added) const;
  std::string byte_text(State* state, char byte, size_t next_step) const;
  void apply(const State& state, size_t first_step, bool added, std::string* text) const;
  std::string release(State* state, bool end) const;

  std::vector<Step> steps_;
  size_t byte_step_ = static_cast<size_t>(-1);  // where byte tokens become bytes
  bool joined_by_space_ = false;                // no decoder: tokens are joined by spaces
  bool per_byte_ = false;  // each invalid byte is one U+FFFD (byte fallback), not each invalid part
  bool suffixes_ = false;
  std::optional<Step> text_strip_;  // on the whole text
};

}  // namespace cyb
