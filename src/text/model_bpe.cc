// SPDX-License-Identifier: Apache-2.0
// Byte-pair encoding: characters become tokens, then the best-ranked neighbouring pair is merged until none
// is left. Short words are merged by scanning, long ones with a heap over a linked list, so that any length
// is near linear.
#include <algorithm>
#include <optional>
#include <queue>

#include "base/error.h"
#include "text/merge_table.h"
#include "text/token_model.h"
#include "text/utf8.h"

namespace cyb {
namespace {

constexpr uint32_t kNone = StringIndex::kNone;

struct Symbol {
  uint32_t id;
  int32_t previous, next;  // -1: none
};

struct Candidate {
  uint32_t rank, position, merged;
  bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : position > o.position; }
};

// Words met in this call. Keys and ids stand in two growing arrays.
class WordCache {
 public:
  static constexpr size_t kMaxWord = 48;
  static constexpr size_t kMaxWords = 1 << 17;

  // The ids of `word`, or null; then `insert` may follow.
  bool find(std::string_view word, uint64_t hash, const int32_t** ids, size_t* count) const {
    if (slots_.empty()) return false;
    for (size_t i = hash & mask_; slots_[i].key_length != 0; i = (i + 1) & mask_) {
      const Slot& s = slots_[i];
      if (s.hash != hash || std::string_view(keys_).substr(s.key, s.key_length) != word) continue;
      *ids = ids_.data() + s.ids;
      *count = s.count;
      return true;
    }
    return false;
  }
  void insert(std::string_view word, uint64_t hash, const int32_t* ids, size_t count) {
    if (used_ * 2 >= slots_.size()) {
      if (used_ >= kMaxWords) return;
      grow();
    }
    ++used_;
    put({hash, static_cast<uint32_t>(keys_.size()), static_cast<uint32_t>(word.size()),
         static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(count)});
    keys_ += word;
    ids_.insert(ids_.end(), ids, ids + count);
  }

 private:
  struct Slot {
    uint64_t hash;
    uint32_t key, key_length, ids, count;
  };
  void put(const Slot& s) {
    size_t i = s.hash & mask_;
    while (slots_[i].key_length != 0) i = (i + 1) & mask_;
    slots_[i] = s;
  }
  void grow() {
    std::vector<Slot> old = std::move(slots_);
    slots_.assign(std::max<size_t>(256, old.size() * 4), Slot{});
    mask_ = slots_.size() - 1;
    for (const Slot& s : old)
      if (s.key_length != 0) put(s);
  }
  std::vector<Slot> slots_;
  size_t mask_ = 0, used_ = 0;
  std::string keys_;
  std::vector<int32_t> ids_;
};

struct BpeScratch : TokenModel::Scratch {
  WordCache cache;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<uint32_t> lengths;  // bytes of each symbol at the start
};

class Bpe : public TokenModel {
 public:
  Bpe(TokenizerSpec* spec, const MergeText& merges, const Vocabulary& vocabulary)
      : vocabulary_(vocabulary),
        byte_fallback_(spec->byte_fallback),
        fuse_unk_(spec->fuse_unk),
        ignore_merges_(spec->ignore_merges),
        prefix_(spec->continuing_prefix),
        suffix_(spec->end_suffix),
        unk_(spec->unk) {
    if (byte_fallback_) bytes_ = byte_token_ids(vocabulary);
    characters_.assign(kDirect, kNone);
    std::string text;
    for (char32_t c = 0; c < kDirect; ++c) {
      if (c >= 0xD800 && c < 0xE000) continue;
      text.clear();
      utf8_append(&text, c);
      characters_[c] = vocabulary_.find_plain(text);
    }
    for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
      longest_ = std::max(longest_, vocabulary.tokens[id].size());
    const bool cuts = vocabulary_.find_plain(kMark) != kNone && prefix_.empty() && suffix_.empty();
    table_.read(spec->merges, merges, vocabulary, prefix_, bytes_, cuts);
    spec->merges = {};
  }

  std::unique_ptr<Scratch> make_scratch() const override { return std::make_unique<BpeScratch>(); }

  void encode(std::string_view piece, std::vector<int32_t>* ids, Scratch* scratch) const override {
    auto& s = *static_cast<BpeScratch*>(scratch);
    if (ignore_merges_ && piece.size() <= longest_) {
      uint32_t id = vocabulary_.find_plain(piece);
      if (id != kNone) return ids->push_back(static_cast<int32_t>(id));
    }
    if (!table_.cuts_before_mark()) return word(piece, ids, &s);
    // No token holds a "▁" after another character than those in `before_mark_`: merges never cross there.
    size_t begin = 0;
    for (size_t i = piece.find(kMark, 1); i != std::string_view::npos;
         i = piece.find(kMark, i + kMark.size())) {
      size_t at = utf8_previous(piece, i);
      char32_t before = utf8_next(piece, &at);
      if (table_.stands_before_mark(before)) continue;
      word(piece.substr(begin, i - begin), ids, &s);
      begin = i;
    }
    word(piece.substr(begin), ids, &s);
  }

  void encode_placed(std::string_view piece, std::vector<int32_t>* ids, std::vector<ByteRange>* places,
                     Scratch* scratch) const override {
    auto& s = *static_cast<BpeScratch*>(scratch);
    if (ignore_merges_ && piece.size() <= longest_) {
      if (uint32_t id = vocabulary_.find_plain(piece); id != kNone) {
        ids->push_back(static_cast<int32_t>(id));
        places->push_back({0, static_cast<uint32_t>(piece.size())});
        return;
      }
    }
    std::vector<Symbol>& symbols = s.symbols;
    s.lengths.clear();
    start_symbols(piece, &symbols, &s.lengths);
    if (symbols.empty()) return;
    merge_by_heap(&symbols, &s.heap);
    uint32_t at = 0;
    for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next) {
      const Symbol& symbol = symbols[static_cast<size_t>(i)];
      const size_t end = symbol.next >= 0 ? static_cast<size_t>(symbol.next) : symbols.size();
      ByteRange place{at, at};
      for (size_t k = static_cast<size_t>(i); k < end; ++k) place.end += s.lengths[k];
      ids->push_back(static_cast<int32_t>(symbol.id));
      places->push_back(place);
      at = place.end;
    }
  }

 private:
  static constexpr char32_t kDirect = 0x3100;

  void word(std::string_view text, std::vector<int32_t>* ids, BpeScratch* s) const {
    if (text.size() > WordCache::kMaxWord) return merge_word(text, ids, s);
    uint64_t hash = hash_bytes(text);
    const int32_t* known;
    size_t count;
    if (s->cache.find(text, hash, &known, &count)) return void(ids->insert(ids->end(), known, known + count));
    size_t before = ids->size();
    merge_word(text, ids, s);
    s->cache.insert(text, hash, ids->data() + before, ids->size() - before);
  }

  uint32_t character_id(std::string_view text, size_t begin, size_t end) const {
    bool first = begin == 0, last = end == text.size();
    if ((first || prefix_.empty()) && (!last || suffix_.empty())) {
      size_t at = begin;
      char32_t c = utf8_next(text, &at);
      return c < kDirect ? characters_[c] : vocabulary_.find_plain(text.substr(begin, end - begin));
    }
    return vocabulary_.find_plain(decorated(text, begin, end));
  }

  std::string decorated(std::string_view text, size_t begin, size_t end) const {
    std::string out = begin == 0 ? "" : prefix_;
    out += text.substr(begin, end - begin);
    if (end == text.size()) out += suffix_;
    return out;
  }

  void start_symbols(std::string_view text, std::vector<Symbol>* symbols,
                     std::vector<uint32_t>* lengths = nullptr) const {
    symbols->clear();
    bool pending_unk = false;
    size_t unknown = 0;  // bytes of the one pending
    auto add = [&](uint32_t id, size_t bytes) {
      auto n = static_cast<int32_t>(symbols->size());
      symbols->push_back({id, n - 1, n + 1});
      if (lengths) lengths->push_back(static_cast<uint32_t>(bytes));
    };
    for (size_t i = 0; i < text.size();) {
      size_t begin = i;
      i += utf8_length(text[i]);
      uint32_t id = character_id(text, begin, i);
      if (id != kNone) {
        if (pending_unk) add(*unk_, unknown);
        pending_unk = false;
        add(id, i - begin);
        continue;
      }
      if (byte_fallback_) {
        std::string whole = decorated(text, begin, i);
        bool all = true;
        for (char c : whole) all = all && bytes_[static_cast<unsigned char>(c)] != kNone;
        if (all) {
          for (char c : whole) add(bytes_[static_cast<unsigned char>(c)], 1);
          continue;
        }
      }
      if (!unk_) continue;  // as in the reference, such characters vanish
      if (pending_unk && !fuse_unk_) add(*unk_, unknown);
      unknown = (pending_unk && fuse_unk_ ? unknown : 0) + (i - begin);
      pending_unk = true;
    }
    if (pending_unk) add(*unk_, unknown);
    if (!symbols->empty()) symbols->back().next = -1;
  }

  void merge_word(std::string_view text, std::vector<int32_t>* ids, BpeScratch* s) const {
    std::vector<Symbol>& symbols = s->symbols;
    start_symbols(text, &symbols);
    if (symbols.empty()) return;
    if (symbols.size() <= 20)
      merge_by_scan(&symbols);
    else
      merge_by_heap(&symbols, &s->heap);
    for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next)
      ids->push_back(static_cast<int32_t>(symbols[static_cast<size_t>(i)].id));
  }

  // Keeps the symbols in an array; `next` is set at the end.
  void merge_by_scan(std::vector<Symbol>* symbols) const {
    uint32_t id[20], rank[20], merged[20];
    size_t n = symbols->size();
    for (size_t i = 0; i < n; ++i) id[i] = (*symbols)[i].id;
    auto look = [&](size_t i) {
      const Merge* m = i + 1 < n ? table_.find(id[i], id[i + 1]) : nullptr;
      rank[i] = m ? table_.rank(m) : kNone;
      merged[i] = m ? m->merged : kNone;
    };
    for (size_t i = 0; i < n; ++i) look(i);
    for (;;) {
      size_t best = 0;
      for (size_t i = 1; i < n; ++i)
        if (rank[i] < rank[best]) best = i;
      if (rank[best] == kNone) break;
      id[best] = merged[best];
      --n;
      for (size_t i = best + 1; i < n; ++i)
        id[i] = id[i + 1], rank[i] = rank[i + 1], merged[i] = merged[i + 1];
      look(best);
      if (best > 0) look(best - 1);
    }
    for (size_t i = 0; i < n; ++i)
      (*symbols)[i] = {id[i], static_cast<int32_t>(i) - 1, i + 1 < n ? static_cast<int32_t>(i) + 1 : -1};
  }

  void merge_by_heap(std::vector<Symbol>* symbols, std::vector<Candidate>* heap) const {
    std::vector<Symbol>& s = *symbols;
    heap->clear();
    auto later = std::greater<Candidate>();
    auto candidate = [&](size_t left, size_t right) -> std::optional<Candidate> {
      const Merge* m = table_.find(s[left].id, s[right].id);
      if (!m) return std::nullopt;
      return Candidate{table_.rank(m), static_cast<uint32_t>(left), m->merged};
    };
    for (size_t i = 0; i + 1 < s.size(); ++i)
      if (auto c = candidate(i, i + 1)) heap->push_back(*c);
    std::make_heap(heap->begin(), heap->end(), later);
    auto push = [&](int32_t left, int32_t right) {
      if (left < 0 || right < 0) return;
      if (auto c = candidate(static_cast<size_t>(left), static_cast<size_t>(right))) {
        heap->push_back(*c);
        std::push_heap(heap->begin(), heap->end(), later);
      }
    };
    while (!heap->empty()) {
      Candidate top = heap->front();
      std::pop_heap(heap->begin(), heap->end(), later);
      heap->pop_back();
      Symbol& left = s[top.position];
      if (left.id == kNone || left.next < 0) continue;  // merged away meanwhile
      Symbol& right = s[static_cast<size_t>(left.next)];
      const Merge* m = table_.find(left.id, right.id);
      if (!m || m->merged != top.merged) continue;
      left.id = top.merged;
      right.id = kNone;
      left.next = right.next;
      if (left.next >= 0) s[static_cast<size_t>(left.next)].previous = static_cast<int32_t>(top.position);
      push(left.previous, static_cast<int32_t>(top.position));
      push(static_cast<int32_t>(top.position), left.next);
    }
  }

  const Vocabulary& vocabulary_;
  bool byte_fallback_, fuse_unk_, ignore_merges_;
  std::string prefix_, suffix_;
  std::optional<uint32_t> unk_;
  std::vector<uint32_t> bytes_;
  std::vector<uint32_t> characters_;  // id of each character below kDirect
  size_t longest_ = 0;
  MergeTable table_;
};

}  // namespace

std::vector<uint32_t> byte_token_ids(const Vocabulary& vocabulary) {
  std::vector<uint32_t> ids;
  for (int b = 0; b < 256; ++b) ids.push_back(vocabulary.find(fmt::format("<0x{:02X}>", b)));
  return ids;
}

std::unique_ptr<TokenModel> make_bpe(TokenizerSpec* spec, const MergeText& merges,
                                     const Vocabulary& vocabulary) {
  return std::make_unique<Bpe>(spec, merges, vocabulary);
}

}  // namespace cyb
