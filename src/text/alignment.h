// SPDX-License-Identifier: Apache-2.0
// Where the bytes of a rewritten text come from in the original one. Steps keep this only where it is asked
// for; its rules for inserted, replaced and removed characters are those of tokenizer.json's reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

struct ByteRange {
  uint32_t begin = 0, end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// For each byte of a text, the bytes of the original that it stands for.
using Alignment = std::vector<ByteRange>;

// Of an unchanged text that begins at `begin` in the original: each byte stands for its whole character.
Alignment alignment_of(std::string_view text, size_t begin);

// Collects the alignment of a text that is being written from another; does nothing where `old` is null.
class AlignmentWriter {
 public:
  explicit AlignmentWriter(Alignment* old) : old_(old) {}
  // The new text up to `size` stands for what byte `source` of the old one does.
  void upto(size_t size, size_t source) {
    if (old_) extend(size, source);
  }
  // `count` more bytes are those of the old text from `source` on.
  void copy(size_t source, size_t count) {
    if (old_) written_.insert(written_.end(), at(source), at(source + count));
  }
  void finish() {
    if (old_) *old_ = std::move(written_);
  }

 private:
  Alignment::const_iterator at(size_t byte) const {
    return old_->cbegin() + static_cast<std::ptrdiff_t>(byte);
  }
  void extend(size_t size, size_t source);
  Alignment* old_;
  Alignment written_;
};

// A character of a new text: 0 replaces the next one of the old text; 1 is inserted; −n replaces the next
// one, and the n behind it vanish.
struct Change {
  char32_t character;
  int32_t change;
};
// Rewrites a text. Changes need not fit together exactly: what is not there counts as the nearest there is.
void apply_changes(std::string* text, Alignment* from, std::span<const Change> changes);

}  // namespace cyb
