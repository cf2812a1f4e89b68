// SPDX-License-Identifier: Apache-2.0
// WordPiece (the longest token first, a word without full cover is one unknown token) and whole words.
#include "base/error.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr uint32_t kNone = StringIndex::kNone;

class WordPiece : public TokenModel {
 public:
  WordPiece(const TokenizerSpec& spec, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        prefix_(spec.continuing_prefix),
        unk_(static_cast<int32_t>(*spec.unk)),
        most_(static_cast<size_t>(spec.max_word_characters)) {
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
      longest_ = std::max(longest_, vocabulary.tokens[id].size());
  }

  void encode(std::string_view word, std::vector<int32_t>* ids, Scratch*) const override {
    encode_placed(word, ids, nullptr, nullptr);
  }

  void encode_placed(std::string_view word, std::vector<int32_t>* ids, std::vector<ByteRange>* places,
                     Scratch*) const override {
    const auto unknown = [&] {
      ids->push_back(unk_);
      if (places) places->push_back({0, static_cast<uint32_t>(word.size())});
    };
    if (static_cast<size_t>(utf8_count(word)) > most_) return unknown();
    size_t first = ids->size(), first_place = places ? places->size() : 0;
    std::string text;
    for (size_t begin = 0; begin < word.size();) {
      uint32_t id = kNone;
      size_t end = word.size();
      if (end - begin > longest_) {
        end = begin + longest_;
        if (end < word.size()) end = utf8_previous(word, end + 1);
      }
      for (; end > begin; end = utf8_previous(word, end)) {
        text = begin > 0 ? prefix_ : "";
        text += word.substr(begin, end - begin);
        if ((id = vocabulary_.find_plain(text)) != kNone) break;
      }
      if (id == kNone) {
        ids->resize(first);
        if (places) places->resize(first_place);
        return unknown();
      }
      ids->push_back(static_cast<int32_t>(id));
      if (places) places->push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
      begin = end;
    }
  }

 private:
  const Vocabulary& vocabulary_;
  std::string prefix_;
  int32_t unk_;
  size_t most_, longest_ = 0;
};

class WordLevel : public TokenModel {
 public:
  WordLevel(const TokenizerSpec& spec, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), unk_(spec.unk) {}

  void encode(std::string_view word, std::vector<int32_t>* ids, Scratch*) const override {
    uint32_t id = vocabulary_.find_plain(word);
    if (id == kNone && !unk_)
      throw error(ErrorKind::Tokenizer,
                  "'{}' is not in the vocabulary, and the vocabulary has no unknown token", word)
          .advise("remove the word from the text");
    ids->push_back(static_cast<int32_t>(id == kNone ? *unk_ : id));
  }
  void encode_placed(std::string_view word, std::vector<int32_t>* ids, std::vector<ByteRange>* places,
                     Scratch* scratch) const override {
    encode(word, ids, scratch);
    places->push_back({0, static_cast<uint32_t>(word.size())});
  }

 private:
  const Vocabulary& vocabulary_;
  std::optional<uint32_t> unk_;
};

}  // namespace

std::unique_ptr<TokenModel> make_wordpiece(TokenizerSpec* spec, const Vocabulary& vocabulary) {
  if (spec->model == TokenizerModel::wordlevel) return std::make_unique<WordLevel>(*spec, vocabulary);
  if (!spec->unk)
    throw error(ErrorKind::Tokenizer, "a WordPiece vocabulary without unknown token")
        .advise("the tokenizer description is damaged: fetch the model again");
  return std::make_unique<WordPiece>(*spec, vocabulary);
}

std::unique_ptr<TokenModel> make_token_model(TokenizerSpec* spec, const MergeText& merges,
                                             const Vocabulary& vocabulary) {
  switch (spec->model) {
    case TokenizerModel::bpe:
      return make_bpe(spec, merges, vocabulary);
    case TokenizerModel::unigram:
      return make_unigram(spec, vocabulary);
    case TokenizerModel::wordpiece:
    case TokenizerModel::wordlevel:
      return make_wordpiece(spec, vocabulary);
  }
  return nullptr;
}

}  // namespace cyb
