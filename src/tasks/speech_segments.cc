// SPDX-License-Identifier: Apache-2.0
// Hysteresis, least lengths, cuts of long segments, padding: as the reference does it, down to its
// comparisons.
#include "tasks/speech_segments.h"

#include <algorithm>

namespace cyb {
namespace {

class Segmenter {
 public:
  Segmenter(int64_t window, int rate, const VoiceSettings& s) : s_(s), window_(window), rate_(rate) {
    low_ = s.low_threshold.value_or(std::max(s.threshold - 0.15, 0.01));
    most_ = rate * s.max_speech - static_cast<double>(window) - 2 * rate * s.pad;
  }

  void take(int64_t now, double p) {
    if (p >= s_.threshold && silence_ > 0) {
      if (const int64_t length = now - silence_; static_cast<double>(length) > rate_ * s_.min_silence_to_cut)
        pauses_.push_back({silence_, length});
      silence_ = 0;
      if (resume_ < cut_) resume_ = now;
    }
    if (p >= s_.threshold && !speaking_) {
      speaking_ = true;
      start_ = now;
      return;
    }
    if (speaking_ && static_cast<double>(now - start_) > most_ && !cut_long(now)) return;
    if (p < low_ && speaking_) {
      if (silence_ == 0) silence_ = now;
      const auto length = static_cast<double>(now - silence_);
      if (!s_.cut_at_longest_silence && length > rate_ * s_.min_silence_to_cut) cut_ = silence_;
      if (length < rate_ * s_.min_silence) return;
      if (static_cast<double>(silence_ - start_) > rate_ * s_.min_speech)
        found_.push_back({start_, silence_});
      forget();
      speaking_ = false;
    }
  }

  std::vector<SpeechSegment> finish(int64_t samples) {
    if (speaking_ && static_cast<double>(samples - start_) > rate_ * s_.min_speech)
      found_.push_back({start_, samples});
    pad(samples);
    return std::move(found_);
  }

 private:
  struct Pause {
    int64_t at, length;
  };

  // The segment is too long: cuts it. False: it ends here, and this window is done.
  bool cut_long(int64_t now) {
    if (s_.cut_at_longest_silence && !pauses_.empty()) {
      const Pause best = *std::max_element(
          pauses_.begin(), pauses_.end(), [](const Pause& a, const Pause& b) { return a.length < b.length; });
      found_.push_back({start_, best.at});
      start_ = best.at + best.length;
      forget();
      return true;
    }
    if (cut_ > 0) {
      found_.push_back({start_, cut_});
      speaking_ = resume_ >= cut_;  // else it has been silent since
      start_ = resume_;
      forget();
      return true;
    }
    found_.push_back({start_, now});
    forget();
    speaking_ = false;
    return false;
  }

  void forget() {
    cut_ = resume_ = silence_ = 0;
    pauses_.clear();
  }

  // Neighbours share a pause that is too short for both.
  void pad(int64_t samples) {
    const double pad = rate_ * s_.pad;
    const auto before = [&](int64_t at) {
      return static_cast<int64_t>(std::max(0.0, static_cast<double>(at) - pad));
    };
    const auto behind = [&](int64_t at) {
      return static_cast<int64_t>(std::min(static_cast<double>(samples), static_cast<double>(at) + pad));
    };
    for (size_t i = 0; i < found_.size(); i++) {
      if (i == 0) found_[i].start = before(found_[i].start);
      if (i + 1 == found_.size()) {
        found_[i].end = behind(found_[i].end);
        continue;
      }
      SpeechSegment& next = found_[i + 1];
      const int64_t pause = next.start - found_[i].end;
      if (static_cast<double>(pause) < 2 * pad) {
        found_[i].end += pause / 2;
        next.start = std::max<int64_t>(0, next.start - pause / 2);
      } else {
        found_[i].end = behind(found_[i].end);
        next.start = before(next.start);
      }
    }
  }

  const VoiceSettings& s_;
  int64_t window_;
  double rate_, low_, most_;
  bool speaking_ = false;
  int64_t start_ = 0;    // of the segment
  int64_t silence_ = 0;  // where the present pause began; 0: none
  int64_t cut_ = 0;      // where the segment could be cut, and where it would go on
  int64_t resume_ = 0;
  std::vector<Pause> pauses_;
  std::vector<SpeechSegment> found_;
};

}  // namespace

VoiceSettings VoiceSettings::for_transcription() {
  VoiceSettings s;
  s.min_speech = 0;
  s.min_silence = 2;
  s.pad = 0.4;
  s.cut_at_longest_silence = false;
  return s;
}

std::vector<SpeechSegment> speech_segments(std::span<const float> probabilities, int64_t window,
                                           int64_t samples, int rate, const VoiceSettings& settings) {
  Segmenter segmenter(window, rate, settings);
  for (size_t i = 0; i < probabilities.size(); i++)
    segmenter.take(static_cast<int64_t>(i) * window, static_cast<double>(probabilities[i]));
  return segmenter.finish(samples);
}

}  // namespace cyb
