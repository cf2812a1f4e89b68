// SPDX-License-Identifier: Apache-2.0
// Many short strings in one block of memory, and a hash index over them: vocabularies of 262k tokens load in
// milliseconds and cost a few MB.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/aligned_array.h"

namespace cyb {

class StringTable {
 public:
  size_t size() const { return ends_.size(); }
  bool empty() const { return ends_.empty(); }
  std::string_view operator[](size_t i) const {
    uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  void push_back(std::string_view text);  // throws Tokenizer above 4 GiB in all
  void reserve(size_t strings, size_t bytes);
  size_t bytes() const { return bytes_.size(); }
  std::string_view joined() const { return bytes_; }
  friend bool operator==(const StringTable&, const StringTable&) = default;

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

uint64_t hash_bytes(std::string_view text);

// Finds the index of a text in a StringTable that outlives it and does not change.
class StringIndex {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  StringIndex() = default;
  // Room for `count` insertions.
  explicit StringIndex(size_t count);

  // A later text replaces an equal earlier one.
  void insert(const StringTable& table, uint32_t index) { insert(table, index, hash_bytes(table[index])); }
  void insert(const StringTable& table, uint32_t index, uint64_t hash);
  uint32_t find(const StringTable& table, std::string_view text) const {
    return find(table, text, hash_bytes(text));
  }
  uint32_t find(const StringTable& table, std::string_view text, uint64_t hash) const;
  // For look-ups in batches: first prefetch() of all, then prefetch_text() of all, then find().
  void prefetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }
  void prefetch_text(const StringTable& table, uint64_t hash) const {
    const Slot& slot = slots_[hash & mask_];
    if (slot.index != kNone) __builtin_prefetch(table[slot.index].data());
  }

 private:
  struct Slot {
    uint32_t tag;  // upper half of the hash
    uint32_t index;
  };
  AlignedArray<Slot> slots_;
  uint64_t mask_ = 0;
};

}  // namespace cyb
