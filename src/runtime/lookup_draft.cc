// SPDX-License-Identifier: Apache-2.0
#include "runtime/lookup_draft.h"

#include <algorithm>

namespace cyb {

std::span<const int32_t> LookupDraft::propose(std::span<const int32_t> history, size_t most) {
  if (pause_ > 0) {
    pause_--;
    return {};
  }
  if (plain_ms_ == 0 || history.size() <= kMatch) return {};
  const size_t length = *std::find_if(kSizes.rbegin() + static_cast<ptrdiff_t>(kSizes.size() - 1 - size_),
                                      kSizes.rend() - 1, [&](size_t s) { return s <= most; });
  if (length > most) return {};
  const auto tail = history.last(kMatch);
  // The latest place first: it is the likeliest to go on in the same way. One that has enough tokens after it
  // is better than one at the very end.
  size_t found = 0, after = 0;
  for (size_t at = history.size() - kMatch; at-- > 0;) {
    if (history[at] != tail[0] ||
        !std::equal(tail.begin(), tail.end(), history.begin() + static_cast<ptrdiff_t>(at)))
      continue;
    const size_t here = std::min(length, history.size() - at - kMatch);
    if (here > after) found = at + kMatch, after = here;
    if (after == length) break;
  }
  return after == length ? history.subspan(found, length) : std::span<const int32_t>();
}

void LookupDraft::plain_step(double ms) { plain_ms_ = plain_ms_ == 0 ? ms : plain_ms_ * 0.9 + ms * 0.1; }

void LookupDraft::tried(size_t drafted, size_t accepted, double ms) {
  const double gain = static_cast<double>(accepted) * plain_ms_ - (ms - plain_ms_);
  gain_ = gain_ * 0.7 + gain * 0.3;
  if (accepted == drafted)
    size_ = std::min(size_ + 1, kSizes.size() - 1);
  else if (2 * accepted < drafted && size_ > 0)
    size_--;
  if (gain_ >= 0) {
    next_pause_ = 8;
  } else if (gain < 0) {
    pause_ = next_pause_;
    next_pause_ = std::min<int64_t>(next_pause_ * 2, 256);
    gain_ = 0;
  }
}

}  // namespace cyb
