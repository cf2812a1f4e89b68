// SPDX-License-Identifier: Apache-2.0
// A trie over bytes whose edges stand in one hash table: some 20 bytes a node, quick to build and to walk.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace cyb {

class ByteTrie {
 public:
  static constexpr uint32_t kNone = 0xFFFFFFFFu;

  ByteTrie() : slots_(64), mask_(63), values_{kNone} {}

  // Gives `text` a value; an earlier one is replaced, and returned (kNone: there was none). Throws Tokenizer
  // above 4 million nodes.
  uint32_t insert(std::string_view text, uint32_t value);

  // The child of `node` (0: the root), or 0.
  uint32_t next(uint32_t node, char c) const { return slots_[slot_of(key_of(node, c))].node; }
  // kNone where no text ends.
  uint32_t value(uint32_t node) const { return values_[node]; }

 private:
  struct Slot {
    uint32_t key = 0, node = 0;  // node 0 is the root, nobody's child: an empty slot
  };
  static uint32_t key_of(uint32_t node, char c) { return node << 8 | static_cast<unsigned char>(c); }
  // Where the key stands, or would.
  size_t slot_of(uint32_t key) const {
    uint64_t product = (key + uint64_t{1}) * 0x9E3779B97F4A7C15ull;
    size_t i = (product >> 32) & mask_;
    while (slots_[i].node != 0 && slots_[i].key != key) i = (i + 1) & mask_;
    return i;
  }
  void grow();

  std::vector<Slot> slots_;
  size_t mask_;
  std::vector<uint32_t> values_;  // by node
};

}  // namespace cyb
