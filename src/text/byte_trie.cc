// SPDX-License-Identifier: Apache-2.0
#include "text/byte_trie.h"

#include <utility>

#include "base/error.h"

namespace cyb {

uint32_t ByteTrie::insert(std::string_view text, uint32_t value) {
  uint32_t node = 0;
  for (char c : text) {
    if (2 * values_.size() >= slots_.size()) grow();
    uint32_t key = key_of(node, c);
    size_t i = slot_of(key);
    if (slots_[i].node == 0) {
      if (values_.size() >> 22 != 0)
        throw error(ErrorKind::Tokenizer, "the vocabulary's texts are too long")
            .advise("no known model comes near; the file is damaged");
      slots_[i] = {key, static_cast<uint32_t>(values_.size())};
      values_.push_back(kNone);
    }
    node = slots_[i].node;
  }
  return std::exchange(values_[node], value);
}

void ByteTrie::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  mask_ = slots_.size() - 1;
  for (const Slot& s : old)
    if (s.node != 0) slots_[slot_of(s.key)] = s;
}

}  // namespace cyb
