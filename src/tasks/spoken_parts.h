// SPDX-License-Identifier: Apache-2.0
// A recording without the parts in which nobody speaks, and what its times were.
#pragma once

#include <span>
#include <vector>

#include "media/sound/sample_store.h"
#include "tasks/speech_segments.h"
#include "tasks/transcript.h"

namespace cyb {

class SpokenParts {
 public:
  // `parts` in order, within the recording, which is not needed afterwards.
  SpokenParts(SampleStore& whole, std::vector<SpeechSegment> parts, int rate);

  std::span<const float> samples() const { return view_; }
  void drop(size_t end) const { kept_.drop(end); }
  const std::vector<SpeechSegment>& parts() const { return parts_; }
  // Times of the shortened recording become those of the whole one. A word stays within one part.
  void restore(SpokenSegment* segment) const;

 private:
  // The part that holds a time; of a time between two the later one, or for ends the earlier one.
  size_t part_at(double seconds, bool is_end) const;
  double original(double seconds, size_t part) const;

  SampleStore kept_;
  std::span<const float> view_;  // of all that is kept
  std::vector<SpeechSegment> parts_;
  std::vector<int64_t> ends_;  // of the parts in the shortened recording
  int rate_;
};

}  // namespace cyb
