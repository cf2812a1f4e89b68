// SPDX-License-Identifier: Apache-2.0
// A recording without the parts in which nobody speaks, and what its times were.
#pragma once

#include <span>
#include <vector>

#include "tasks/speech_segments.h"
#include "tasks/transcript.h"

namespace cyb {

class SpokenParts {
 public:
  // `parts` in order, within the recording.
  SpokenParts(std::span<const float> samples, std::vector<SpeechSegment> parts, int rate);

  std::span<const float> samples() const { return kept_; }
  // Times of the shortened recording become those of the whole one. A word stays within one part.
  void restore(SpokenSegment* segment) const;

 private:
  // The part that holds a time; of a time between two the later one, or for ends the earlier one.
  size_t part_at(double seconds, bool is_end) const;
  double original(double seconds, size_t part) const;

  std::vector<float> kept_;
  std::vector<SpeechSegment> parts_;
  std::vector<int64_t> ends_;  // of the parts in the shortened recording
  int rate_;
};

}  // namespace cyb
