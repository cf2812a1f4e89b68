// SPDX-License-Identifier: Apache-2.0
// Text to token ids and back, as the model's own description (text/tokenizer_spec.h) says.
// A Tokenizer does not change after construction: any number of threads may use one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/token_decoder.h"
#include "text/tokenizer_spec.h"

namespace cyb {

struct EncodeOptions {
  bool parse_special =
      false;                // texts of control tokens ("<|im_end|>") become them; never for what users typed
  bool add_special = true;  // put the tokens around the text that the model wants (BOS, [CLS] …)
};

struct DecodeOptions {
  bool skip_special = true;  // leave control tokens out
  bool continues = false;    // the text goes on from an earlier one: its first space is kept
};

class Tokenizer {
 public:
  // Tokenizer error if the description does not fit together or uses a step that is not known.
  explicit Tokenizer(TokenizerSpec spec);
  // From the text of a `vocab` section.
  static Tokenizer from_vocab(std::string_view section);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Invalid UTF-8 is read as U+FFFD, as Python's errors="replace" does.
  std::vector<int32_t> encode(std::string_view text, EncodeOptions options = {}) const;
  // The same ids, each with where it stands: the bytes of the text that it is made of, and the number of its
  // word (a piece that the pre-tokenizer cut, or an added token). Bytes are those of the text as it is read,
  // see above. Tokens put around the text have no word and stand nowhere.
  struct Place {
    size_t begin = 0, end = 0;
    int64_t word = -1;
    friend bool operator==(const Place&, const Place&) = default;
  };
  struct Placed {
    std::vector<int32_t> ids;
    std::vector<Place> places;
  };
  Placed encode_placed(std::string_view text, EncodeOptions options = {}) const;
  // Two texts, as rerankers and sentence-pair models take them; types are 0 and 1 where the model tells them
  // apart.
  struct Pair {
    std::vector<int32_t> ids, types;
  };
  Pair encode_pair(std::string_view first, std::string_view second, EncodeOptions options = {}) const;
  // The same of texts that are tokens already.
  Pair join_pair(std::span<const int32_t> first, std::span<const int32_t> second,
                 bool add_special = true) const;

  // Always valid UTF-8: incomplete and invalid bytes become U+FFFD. Ids without token give nothing.
  std::string decode(std::span<const int32_t> ids, DecodeOptions options = {}) const;

  int32_t size() const;                           // ids are 0 … size() − 1
  std::string_view token_text(int32_t id) const;  // as the vocabulary spells it; empty if there is none
  std::optional<int32_t> token_id(std::string_view text) const;
  bool is_special(int32_t id) const;  // a control token

  std::optional<int32_t> bos() const;
  std::optional<int32_t> eos() const;
  std::optional<int32_t> pad() const;
  std::optional<int32_t> unk() const;
  std::optional<int32_t> sep() const;
  std::optional<int32_t> cls() const;
  std::optional<int32_t> mask() const;
  // encode() with add_special begins with `bos` (ends with `eos`): then a chat template must not write it
  // again.
  bool adds_bos() const;
  bool adds_eos() const;

 private:
  friend class StreamDecoder;
  Tokenizer(TokenizerSpec spec, const MergeText& merges);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Text that may be shown after each token: all that push() and finish() return, put together, equals decode()
// of all ids. Only incomplete characters are held back. The tokenizer must outlive it.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {});
  std::string push(int32_t id);
  std::string finish();  // then the next push() begins a new text

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  TokenDecoder::State state_;
};

}  // namespace cyb
