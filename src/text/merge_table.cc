// SPDX-License-Identifier: Apache-2.0
#include "text/merge_table.h"

#include <algorithm>
#include <deque>
#include <future>

#include "base/error.h"
#include "base/processors.h"
#include "text/utf8.h"
#include "text/vocab_lines.h"

namespace cyb {
namespace {

constexpr uint32_t kNone = StringIndex::kNone;
constexpr uint32_t kBatch = 32;
constexpr uint32_t kWorthAThread = 1 << 15;

struct Halves {
  std::string_view left, right;
};

class MergeSource {
 public:
  virtual ~MergeSource() = default;
  // The next ones, at most kBatch; 0: no more. The views hold until the next call.
  virtual uint32_t read(Halves* out) = 0;
};

class ListedMerges : public MergeSource {
 public:
  explicit ListedMerges(const StringTable& table) : table_(table) {}
  uint32_t read(Halves* out) override {
    uint32_t n = 0;
    for (; n < kBatch && at_ < table_.size(); n++, at_ += 2) out[n] = {table_[at_], table_[at_ + 1]};
    return n;
  }

 private:
  const StringTable& table_;
  size_t at_ = 0;
};

// Lines of a vocab section, numbered from `first` to `end`.
class WrittenMerges : public MergeSource {
 public:
  WrittenMerges(const MergeText& text, size_t from, size_t to, uint32_t first, uint32_t end)
      : in_(text.vocab, from, to), rank_(first), end_(end) {}
  uint32_t read(Halves* out) override {
    held_.clear();
    uint32_t n = 0;
    for (; n < kBatch; n++, rank_++) {
      uint32_t number;
      Halves& halves = out[n];
      const char* next = in_.plain_pair(&number, &halves.left, &halves.right);
      if (next && number == rank_ && rank_ < end_) {
        in_.skip_to(next);
        continue;
      }
      if (!in_.next()) break;
      if (in_.number() != rank_ || rank_ >= end_) in_.fail("merges numbered from 0");
      in_.pair([&](std::string_view half) { held_.emplace_back(half); });
      halves = {held_[held_.size() - 2], held_.back()};
      in_.end_of_line();
    }
    if (n < kBatch && rank_ != end_) in_.fail("merges numbered from 0");
    return n;
  }

 private:
  vocab::Lines in_;
  uint32_t rank_, end_;
  std::deque<std::string> held_;  // texts with escapes
};

// Where the lines can be cut in two: the place, and the number of the merge there. 0: nowhere.
size_t cut(const MergeText& text, uint32_t* number) {
  size_t at = text.begin + (text.end - text.begin) / 20 * 11;  // the first part is put into the table at once
  for (int attempt = 0; attempt < 64; attempt++) {
    at = text.vocab.find('\n', at);
    if (at == std::string_view::npos || ++at >= text.end) return 0;
    std::string_view left, right;
    if (vocab::Lines(text.vocab, at, text.end).plain_pair(number, &left, &right))
      return *number > 0 && *number < text.count ? at : 0;
  }
  return 0;
}

// The token left + right, which is mostly the last one found or the one after it.
uint32_t merged_id(const Vocabulary& vocabulary, std::string_view left, std::string_view right,
                   uint32_t* guess, std::string* text) {
  const StringTable& tokens = vocabulary.tokens;
  auto is_it = [&](uint32_t id) {
    if (id >= tokens.size()) return false;
    const std::string_view token = tokens[id];
    return token.size() == left.size() + right.size() && token.starts_with(left) && token.ends_with(right);
  };
  for (uint32_t id = *guess; id < *guess + 2; ++id)
    if (is_it(id) && !is_it(id + 1)) return *guess = id;
  text->assign(left);
  text->append(right);
  const uint32_t id = vocabulary.find(*text);
  if (id != kNone) *guess = id;
  return id;
}

}  // namespace

// Merges that one thread reads.
struct MergeTable::Piece {
  MergeSource* source;
  uint32_t first, end;  // ranks
  bool insert;          // into the table, too
  bool cuts;
  std::vector<char32_t> before_mark;

  // Remembers the characters that stand before a mark inside of a merged token.
  void note_mark(std::string_view text) {
    for (size_t i = text.find(kMark, 1); i != std::string_view::npos;
         i = text.find(kMark, i + kMark.size())) {
      size_t at = utf8_previous(text, i);
      const char32_t c = utf8_next(text, &at);
      if (std::find(before_mark.begin(), before_mark.end(), c) == before_mark.end()) before_mark.push_back(c);
      if (before_mark.size() > 64) cuts = false;
    }
  }
};

void MergeTable::read(const StringTable& listed, const MergeText& text, const Vocabulary& vocabulary,
                      std::string_view prefix, const std::vector<uint32_t>& bytes, bool cuts) {
  if (listed.size() % 2 != 0) throw error(ErrorKind::Tokenizer, "a merge has no second half");
  const size_t count = text.count > 0 ? text.count : listed.size() / 2;
  if (count >= kRank) throw error(ErrorKind::Tokenizer, "a vocabulary of {} merges", count);
  merges_ = make_aligned<Merge>(count);
  size_t size = 16;
  while (size < count * 2) size *= 2;
  slots_ = make_aligned<uint32_t>(size);
  std::fill_n(slots_.get(), size, kEmpty);
  mask_ = size - 1;
  std::vector<bool> is_byte(bytes.empty() ? 0 : vocabulary.tokens.size());
  for (const uint32_t id : bytes)
    if (id != kNone) is_byte[id] = true;

  const auto total = static_cast<uint32_t>(count);
  std::vector<Piece> pieces;
  std::vector<std::unique_ptr<MergeSource>> sources;
  auto add = [&](std::unique_ptr<MergeSource> source, uint32_t first, uint32_t end) {
    pieces.push_back({source.get(), first, end, first == 0, cuts, {}});
    sources.push_back(std::move(source));
  };
  uint32_t middle = 0;
  size_t at = 0;
  if (text.count == 0) {
    add(std::make_unique<ListedMerges>(listed), 0, total);
  } else if (total > kWorthAThread && available_processors() > 1 && (at = cut(text, &middle)) > 0) {
    add(std::make_unique<WrittenMerges>(text, text.begin, at, 0, middle), 0, middle);
    add(std::make_unique<WrittenMerges>(text, at, text.end, middle, total), middle, total);
  } else {
    add(std::make_unique<WrittenMerges>(text, text.begin, text.end, 0, total), 0, total);
  }
  std::future<void> other;
  if (pieces.size() > 1)
    other = std::async(std::launch::async, [&] { resolve(&pieces[1], vocabulary, prefix, is_byte); });
  resolve(&pieces[0], vocabulary, prefix, is_byte);
  if (other.valid()) {
    other.get();
    for (uint32_t rank = middle; rank < total; rank++) {
      if (rank + kBatch < total) {
        const Merge& ahead = merges_[rank + kBatch];
        __builtin_prefetch(&slots_[hash(ahead.left, ahead.right) & mask_], 1);
      }
      if (merges_[rank].merged != kNone) insert(rank);
    }
  }
  cuts_ = true;
  for (const Piece& piece : pieces) {
    cuts_ = cuts_ && piece.cuts;
    before_mark_.insert(before_mark_.end(), piece.before_mark.begin(), piece.before_mark.end());
  }
  std::sort(before_mark_.begin(), before_mark_.end());
}

// Look-ups are done in batches, so that the memory is on its way when it is needed.
void MergeTable::resolve(Piece* piece, const Vocabulary& vocabulary, std::string_view prefix,
                         const std::vector<bool>& is_byte) {
  Halves halves[kBatch];
  uint64_t hashes[2 * kBatch];
  uint32_t guess = 0;
  uint32_t noted = kNone;
  std::string text;
  for (uint32_t base = piece->first, n; (n = piece->source->read(halves)) > 0; base += n) {
    for (uint32_t k = 0; k < n; k++) {
      hashes[2 * k] = hash_bytes(halves[k].left);
      hashes[2 * k + 1] = hash_bytes(halves[k].right);
      vocabulary.index.prefetch(hashes[2 * k]);
      vocabulary.index.prefetch(hashes[2 * k + 1]);
    }
    for (uint32_t k = 0; k < 2 * n; k++) vocabulary.index.prefetch_text(vocabulary.tokens, hashes[k]);
    for (uint32_t k = 0; k < n; k++) {
      const std::string_view left = halves[k].left, right = halves[k].right;
      const std::string_view added = right.starts_with(prefix) ? right.substr(prefix.size()) : right;
      Merge& m = merges_[base + k];
      m = {vocabulary.index.find(vocabulary.tokens, left, hashes[2 * k]),
           vocabulary.index.find(vocabulary.tokens, right, hashes[2 * k + 1]),
           merged_id(vocabulary, left, added, &guess, &text)};
      if (m.left == kNone || m.right == kNone || m.merged == kNone)
        throw error(ErrorKind::Tokenizer,
                    "merge {} ('{}' + '{}') names a token that is not in the vocabulary", base + k, left,
                    right)
            .advise("the tokenizer description is damaged: fetch the model again");
      if (piece->cuts && m.merged != noted) piece->note_mark(vocabulary.tokens[noted = m.merged]);
      __builtin_prefetch(&slots_[hash(m.left, m.right) & mask_], 1);
      // What plain text never gives is never merged.
      if (vocabulary.hidden[m.left] || vocabulary.hidden[m.right] || vocabulary.hidden[m.merged])
        m.merged = kNone;
      else if (!is_byte.empty() && (is_byte[m.left] || is_byte[m.right]))
        piece->cuts = false;
    }
    if (!piece->insert) continue;
    for (uint32_t k = 0; k < n; k++)
      if (merges_[base + k].merged != kNone) insert(base + k);
  }
}

// A later merge replaces an equal earlier one.
void MergeTable::insert(uint32_t rank) {
  const Merge& m = merges_[rank];
  const uint64_t h = hash(m.left, m.right);
  const uint32_t tag = tag_of(h);
  for (uint64_t i = h & mask_;; i = (i + 1) & mask_) {
    const uint32_t slot = slots_[i];
    if (slot != kEmpty) {
      if ((slot & ~kRank) != tag) continue;
      const Merge& other = merges_[slot & kRank];
      if (other.left != m.left || other.right != m.right) continue;
    }
    slots_[i] = tag | rank;
    return;
  }
}

bool MergeTable::stands_before_mark(char32_t c) const {
  return std::binary_search(before_mark_.begin(), before_mark_.end(), c);
}

}  // namespace cyb
