// SPDX-License-Identifier: Apache-2.0
// The merges of byte-pair encoding: (left, right) → (rank, merged), and how a vocabulary's list becomes that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_array.h"
#include "text/token_model.h"

namespace cyb {

constexpr std::string_view kMark = "\xE2\x96\x81";  // "▁"

struct Merge {
  uint32_t left, right, merged;
};

class MergeTable {
 public:
  // Merges of `listed`, or those of `text`. `prefix` is taken off the right half of a merged text; `bytes`
  // are the tokens that stand for bytes. `cuts`: whether words may be cut before a mark, as far as the caller
  // knows. Throws Tokenizer or InvalidFile.
  void read(const StringTable& listed, const MergeText& text, const Vocabulary& vocabulary,
            std::string_view prefix, const std::vector<uint32_t>& bytes, bool cuts);

  const Merge* find(uint32_t left, uint32_t right) const {
    if (!slots_) return nullptr;
    const uint64_t h = hash(left, right);
    const uint32_t tag = tag_of(h);
    for (uint64_t i = h & mask_;; i = (i + 1) & mask_) {
      const uint32_t slot = slots_[i];
      if (slot == kEmpty) return nullptr;
      if ((slot & ~kRank) != tag) continue;
      const Merge& m = merges_[slot & kRank];
      if (m.left == left && m.right == right) return &m;
    }
  }
  uint32_t rank(const Merge* m) const { return static_cast<uint32_t>(m - merges_.get()); }

  // Whether no token holds a mark after another character than those of stands_before_mark(): then merges
  // never cross there.
  bool cuts_before_mark() const { return cuts_; }
  bool stands_before_mark(char32_t c) const;

 private:
  struct Piece;
  void resolve(Piece* piece, const Vocabulary& vocabulary, std::string_view prefix,
               const std::vector<bool>& is_byte);
  void insert(uint32_t rank);

  // A slot is the upper bits of the hash, and the rank; the pair is seen in `merges_`.
  static constexpr uint32_t kRankBits = 22, kRank = (1u << kRankBits) - 1, kEmpty = ~0u;
  static uint32_t tag_of(uint64_t h) { return static_cast<uint32_t>(h >> 32) & ~kRank; }
  static uint64_t hash(uint32_t left, uint32_t right) {
    const uint64_t key = uint64_t{left} << 32 | right;
    const auto product = static_cast<unsigned __int128>(key ^ 0x1D8E4E27C47D124Full) * 0x9E3779B97F4A7C15ull;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  AlignedArray<Merge> merges_;  // by rank
  AlignedArray<uint32_t> slots_;
  uint64_t mask_ = 0;
  bool cuts_ = false;
  std::vector<char32_t> before_mark_;
};

}  // namespace cyb
