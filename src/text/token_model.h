// SPDX-License-Identifier: Apache-2.0
// The part of a tokenizer that turns one piece of text into ids. A control token never comes out of plain
// text.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "text/alignment.h"
#include "text/tokenizer_spec.h"

namespace cyb {

// What the model looks up in, shared with the tokenizer. `index` holds all tokens.
struct Vocabulary {
  StringTable tokens;
  StringIndex index;
  std::vector<bool> special;  // control tokens, by id
  std::vector<bool> hidden;   // tokens that plain text never gives: control and outside ones

  uint32_t find(std::string_view text) const { return index.find(tokens, text); }
  // One that plain text may give.
  uint32_t find_plain(std::string_view text) const {
    uint32_t id = find(text);
    return id != StringIndex::kNone && hidden[id] ? StringIndex::kNone : id;
  }
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Working memory of one encode() call.
  class Scratch {
   public:
    virtual ~Scratch() = default;
  };
  virtual std::unique_ptr<Scratch> make_scratch() const { return nullptr; }

  // Appends the ids of a piece (valid UTF-8, not empty).
  virtual void encode(std::string_view piece, std::vector<int32_t>* ids, Scratch* scratch) const = 0;
  // The same ids; for each also the bytes of the piece that it was made of.
  virtual void encode_placed(std::string_view piece, std::vector<int32_t>* ids,
                             std::vector<ByteRange>* places, Scratch* scratch) const = 0;
};

// Takes what it needs out of `spec` (merges, scores); `merges` are those that are not in it. Tokenizer error if the
// description does not fit together.
std::unique_ptr<TokenModel> make_token_model(TokenizerSpec* spec, const MergeText& merges, const Vocabulary& vocabulary);

std::unique_ptr<TokenModel> make_bpe(TokenizerSpec* spec, const MergeText& merges, const Vocabulary& vocabulary);
std::unique_ptr<TokenModel> make_unigram(TokenizerSpec* spec, const Vocabulary& vocabulary);
std::unique_ptr<TokenModel> make_wordpiece(TokenizerSpec* spec, const Vocabulary& vocabulary);

// The ids of <0x00>…<0xFF>; kNone where there is none.
std::vector<uint32_t> byte_token_ids(const Vocabulary& vocabulary);

}  // namespace cyb
