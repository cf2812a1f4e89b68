// SPDX-License-Identifier: Apache-2.0
// A tokenizer as its model describes it: what the `vocab` section of a .model file holds, in the terms of
// Hugging Face's tokenizer.json. Plain data; text/tokenizer.h gives it behaviour.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/string_table.h"

namespace cyb {

enum class TokenizerModel : uint8_t { bpe, unigram, wordpiece, wordlevel };

// As in tokenizer.json: "BPE", "Unigram", "WordPiece", "WordLevel".
const char* to_string(TokenizerModel model);

using StepValue = std::variant<bool, int64_t, std::string, std::vector<std::string>>;

// One step of the normalizer, pre-tokenizer, post-processor or decoder. `type` and parameters are
// tokenizer.json's, with these differences: sequences are flattened; a pattern is `pattern` (literal) or
// `regex`; the template of TemplateProcessing is `single` and `pair`, lists of "$A:0" and "token:0"; binary
// tables stay in base64; Precompiled with `longest_match` works as SentencePiece itself does.
struct TokenizerStep {
  std::string type;
  std::vector<std::pair<std::string, StepValue>> values;

  const StepValue* find(std::string_view name) const;
  // The value of that kind, or the default where there is none; Tokenizer error where it is of another kind.
  bool flag(std::string_view name, bool missing) const;
  int64_t number(std::string_view name, int64_t missing) const;
  std::string text(std::string_view name, std::string_view missing) const;
  friend bool operator==(const TokenizerStep&, const TokenizerStep&) = default;
};

// A token that is looked for in the text before anything else.
struct AddedToken {
  uint32_t id = 0;
  bool special = false;      // a control token: only where the caller parses specials
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool single_word = false;  // not inside a word
  bool normalized = false;   // looked for in the normalized text
  bool outside = false;      // not of the model's own vocabulary: the model never gives it
  friend bool operator==(const AddedToken&, const AddedToken&) = default;
};

struct TokenizerSpec {
  TokenizerModel model = TokenizerModel::bpe;
  StringTable tokens;          // by id; an empty text is an id without token
  StringTable merges;          // BPE, best first: left, right, left, right, …
  std::vector<double> scores;  // Unigram, by id; those with −inf and after the last score are never given
  std::vector<AddedToken> added;

  bool byte_fallback = false;         // BPE, Unigram: unknown characters become <0x00>…<0xFF>
  bool fuse_unk = false;              // BPE: neighbouring unknown characters become one token
  bool ignore_merges = false;         // BPE: a word that is a token is not built by merges
  std::string continuing_prefix;      // BPE, WordPiece: "##"
  std::string end_suffix;             // BPE: "</w>"
  int64_t max_word_characters = 100;  // WordPiece: longer words are unknown

  std::vector<TokenizerStep> normalizer, pre_tokenizer, post_processor, decoder;

  std::optional<uint32_t> unk;  // what the model gives for what it does not know
  // Ids from here on are pieces that the model has no number for: it gives `unk` for each.
  std::optional<uint32_t> first_unlisted;
  // Roles of tokens.
  std::optional<uint32_t> bos, eos, pad, sep, cls, mask;

  friend bool operator==(const TokenizerSpec&, const TokenizerSpec&) = default;
};

// Ids above this are refused: larger vocabularies do not exist, and hostile files ask for the memory.
constexpr uint32_t kMaxTokens = 1u << 22;

// The text of the `vocab` section. read_vocab(write_vocab(s)) == s; errors are InvalidFile and name the line.
std::string write_vocab(const TokenizerSpec& spec);
TokenizerSpec read_vocab(std::string_view text);

// Merges that are still lines of a `vocab` section: hundreds of thousands, which only one reader wants.
struct MergeText {
  std::string_view vocab;     // the whole section
  size_t begin = 0, end = 0;  // of the lines
  uint32_t count = 0;
};
// The same; where it can, it leaves the merges in the text, unchecked.
TokenizerSpec read_vocab(std::string_view text, MergeText* merges);

}  // namespace cyb
