// SPDX-License-Identifier: Apache-2.0
// Unigram: of all ways to cut a piece into tokens, the one with the best sum of scores (Viterbi). Ties and
// the score of unknown characters follow the reference, so that the ids are equal.
#include <algorithm>
#include <limits>

#include "base/error.h"
#include "text/byte_trie.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr double kUnknownPenalty = 10;
constexpr uint32_t kNone = StringIndex::kNone;

struct Node {
  double score = 0;
  uint32_t token = kNone;
  size_t from = kUnreached;
  static constexpr size_t kUnreached = std::numeric_limits<size_t>::max();
};

struct UnigramScratch : TokenModel::Scratch {
  std::vector<Node> best;
};

class Unigram : public TokenModel {
 public:
  Unigram(TokenizerSpec* spec, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary), scores_(std::move(spec->scores)), unk_(spec->unk) {
    if (spec->byte_fallback) bytes_ = byte_token_ids(vocabulary);
    double lowest = std::numeric_limits<double>::infinity();
    for (uint32_t id = 0; id < scores_.size(); ++id) {
      if (scores_[id] == -std::numeric_limits<double>::infinity()) continue;
      lowest = std::min(lowest, scores_[id]);
      std::string_view text = vocabulary.tokens[id];
      if (!text.empty() && !vocabulary.hidden[id] && id != spec->unk) trie_.insert(text, id);
    }
    unknown_score_ = lowest - kUnknownPenalty;
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<UnigramScratch>(); }

  void encode(std::string_view piece, std::vector<int32_t>* ids, Scratch* scratch) const override {
    encode_placed(piece, ids, nullptr, scratch);
  }

  void encode_placed(std::string_view piece, std::vector<int32_t>* ids, std::vector<ByteRange>* places,
                     Scratch* scratch) const override {
    std::vector<Node>& best = static_cast<UnigramScratch*>(scratch)->best;
    best.assign(piece.size() + 1, Node{});
    for (size_t begin = 0; begin < piece.size();) {
      double till_here = best[begin].score;
      size_t length = utf8_length(piece[begin]);
      bool single = false;  // a token of just this character
      uint32_t node = 0;
      for (size_t end = begin; end < piece.size() && (node = trie_.next(node, piece[end])) != 0;) {
        ++end;
        uint32_t token = trie_.value(node);
        if (token == kNone) continue;
        reach(&best[end], till_here + scores_[token], token, begin);
        single = single || end - begin == length;
      }
      if (!single) reach(&best[begin + length], till_here + unknown_score_, kNone, begin);
      begin += length;
    }
    // Backwards; neighbouring unknown characters are one.
    size_t first = ids->size(), first_place = places ? places->size() : 0;
    for (size_t end = piece.size(); end > 0;) {
      size_t begin = best[end].from;
      uint32_t token = best[end].token;
      if (token == kNone) {
        while (begin > 0 && best[begin].token == kNone) begin = best[begin].from;
        unknown(piece.substr(begin, end - begin), ids);
      } else {
        ids->push_back(static_cast<int32_t>(token));
      }
      if (places)
        places->resize(first_place + ids->size() - first,
                       {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)});
      end = begin;
    }
    std::reverse(ids->begin() + static_cast<ptrdiff_t>(first), ids->end());
    if (places) std::reverse(places->begin() + static_cast<ptrdiff_t>(first_place), places->end());
  }

 private:
  static void reach(Node* node, double score, uint32_t token, size_t from) {
    if (node->from == Node::kUnreached || score > node->score) *node = {score, token, from};
  }

  // In reverse order, as encode() collects.
  void unknown(std::string_view text, std::vector<int32_t>* ids) const {
    bool all = !bytes_.empty();
    for (char c : text) all = all && bytes_[static_cast<unsigned char>(c)] != kNone;
    if (all) {
      for (size_t i = text.size(); i-- > 0;)
        ids->push_back(static_cast<int32_t>(bytes_[static_cast<unsigned char>(text[i])]));
      return;
    }
    if (!unk_)
      throw error(ErrorKind::Tokenizer,
                  "'{}' is not in the vocabulary, and the vocabulary has no unknown token", text)
          .advise("remove the character from the text");
    ids->push_back(static_cast<int32_t>(*unk_));
  }

  const Vocabulary& vocabulary_;
  std::vector<double> scores_;
  std::optional<uint32_t> unk_;
  std::vector<uint32_t> bytes_;
  ByteTrie trie_;
  double unknown_score_ = 0;
};

}  // namespace

std::unique_ptr<TokenModel> make_unigram(TokenizerSpec* spec, const Vocabulary& vocabulary) {
  if (spec->scores.empty() || spec->scores.size() > vocabulary.tokens.size())
    throw error(ErrorKind::Tokenizer, "a unigram vocabulary of {} tokens has {} scores",
                vocabulary.tokens.size(), spec->scores.size())
        .advise("the tokenizer description is damaged: fetch the model again");
  return std::make_unique<Unigram>(spec, vocabulary);
}

}  // namespace cyb
