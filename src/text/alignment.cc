// SPDX-License-Identifier: Apache-2.0
#include "text/alignment.h"

#include <algorithm>

#include "text/utf8.h"

namespace cyb {

Alignment alignment_of(std::string_view text, size_t begin) {
  Alignment out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t n = utf8_length(text[i]);
    const auto first = static_cast<uint32_t>(begin + i);
    out.insert(out.end(), n, {first, first + static_cast<uint32_t>(n)});
    i += n;
  }
  return out;
}

void AlignmentWriter::extend(size_t size, size_t source) {
  const ByteRange place = old_->empty() ? ByteRange{} : (*old_)[std::min(source, old_->size() - 1)];
  if (size > written_.size()) written_.resize(size, place);
}

void apply_changes(std::string* text, Alignment* from, std::span<const Change> changes) {
  const std::string_view old = *text;
  std::string out;
  out.reserve(old.size());
  AlignmentWriter places(from);
  size_t at = 0;
  const auto skip = [&] { at = at < old.size() ? at + utf8_length(old[at]) : at; };
  for (const Change& c : changes) {
    utf8_append(&out, c.character);
    if (c.change > 0) {
      places.upto(out.size(), at > 0 ? at - 1 : 0);
      continue;
    }
    places.upto(out.size(), at);
    for (int32_t n = 0; n <= -c.change && at < old.size(); ++n) skip();
  }
  places.finish();
  *text = std::move(out);
}

}  // namespace cyb
