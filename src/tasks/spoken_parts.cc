// SPDX-License-Identifier: Apache-2.0
#include "tasks/spoken_parts.h"

#include <algorithm>
#include <cmath>

namespace cyb {

SpokenParts::SpokenParts(SampleStore& whole, std::vector<SpeechSegment> parts, int rate)
    : parts_(std::move(parts)), rate_(rate) {
  constexpr int64_t kStep = int64_t{1} << 20;
  const std::span<const float> samples = whole.all();
  const auto size = static_cast<int64_t>(samples.size());
  for (SpeechSegment& p : parts_) {
    p.start = std::clamp<int64_t>(p.start, 0, size);
    p.end = std::clamp<int64_t>(p.end, p.start, size);
    for (int64_t at = p.start; at < p.end; at += kStep) {
      kept_.append(
          samples.subspan(static_cast<size_t>(at), static_cast<size_t>(std::min(kStep, p.end - at))));
      whole.drop(static_cast<size_t>(at));
    }
    ends_.push_back(static_cast<int64_t>(kept_.size()));
  }
  view_ = kept_.all();
}

size_t SpokenParts::part_at(double seconds, bool is_end) const {
  const auto at = static_cast<int64_t>(seconds * rate_);
  const auto it = is_end ? std::lower_bound(ends_.begin(), ends_.end(), at)
                         : std::upper_bound(ends_.begin(), ends_.end(), at);
  return std::min(static_cast<size_t>(it - ends_.begin()), ends_.size() - 1);
}

double SpokenParts::original(double seconds, size_t part) const {
  const int64_t before = part == 0 ? 0 : ends_[part - 1];
  const double left_out = static_cast<double>(parts_[part].start - before) / rate_;
  return std::round((left_out + seconds) * 100) / 100;
}

void SpokenParts::restore(SpokenSegment* s) const {
  if (parts_.empty()) return;
  for (SpokenWord& w : s->words) {
    const size_t part = part_at((w.start + w.end) / 2, false);
    w.start = original(w.start, part);
    w.end = original(w.end, part);
  }
  if (s->words.empty()) {
    s->start = original(s->start, part_at(s->start, false));
    s->end = original(s->end, part_at(s->end, true));
  } else {
    s->start = s->words.front().start;
    s->end = s->words.back().end;
  }
}

}  // namespace cyb
