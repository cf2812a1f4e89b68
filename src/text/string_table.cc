// SPDX-License-Identifier: Apache-2.0
#include "text/string_table.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cyb {

void StringTable::push_back(std::string_view text) {
  if (bytes_.size() + text.size() > 0xFFFFFFFFu)
    throw error(ErrorKind::Tokenizer, "the vocabulary's texts take more than 4 GiB");
  bytes_.append(text);
  ends_.push_back(static_cast<uint32_t>(bytes_.size()));
}

void StringTable::reserve(size_t strings, size_t bytes) {
  ends_.reserve(strings);
  bytes_.reserve(bytes);
}

uint64_t hash_bytes(std::string_view text) {
  constexpr uint64_t k = 0x9E3779B97F4A7C15ull;
  auto mix = [](uint64_t a, uint64_t b) {
    auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t h = mix(text.size() + 0x1D8E4E27C47D124Full, k);
  const char* p = text.data();
  size_t n = text.size();
  uint64_t word;
  for (; n >= 8; n -= 8, p += 8) {
    std::memcpy(&word, p, 8);
    h = mix(h ^ word, k);
  }
  word = 0;
  if (n > 0) std::memcpy(&word, p, n);
  return mix(h ^ word, 0xA0761D6478BD642Full);
}

StringIndex::StringIndex(size_t count) {
  size_t size = 16;
  while (size < count * 2) size *= 2;
  slots_ = make_aligned<Slot>(size);
  std::fill_n(slots_.get(), size, Slot{kNone, kNone});
  mask_ = size - 1;
}

void StringIndex::insert(const StringTable& table, uint32_t index, uint64_t hash) {
  auto tag = static_cast<uint32_t>(hash >> 32);
  for (uint64_t i = hash & mask_;; i = (i + 1) & mask_) {
    Slot& slot = slots_[i];
    if (slot.index == kNone || (slot.tag == tag && table[slot.index] == table[index])) {
      slot = {tag, index};
      return;
    }
  }
}

uint32_t StringIndex::find(const StringTable& table, std::string_view text, uint64_t hash) const {
  if (!slots_) return kNone;
  auto tag = static_cast<uint32_t>(hash >> 32);
  for (uint64_t i = hash & mask_;; i = (i + 1) & mask_) {
    const Slot& slot = slots_[i];
    if (slot.index == kNone || (slot.tag == tag && table[slot.index] == text)) return slot.index;
  }
}

}  // namespace cyb
