// SPDX-License-Identifier: Apache-2.0
#include "media/sound/resampler.h"

#include <soxr.h>

#include "base/error.h"

namespace cyb {

struct Resampler::State {
  soxr_t soxr = nullptr;
  double ratio = 1;
  State(int from, int to) : ratio(static_cast<double>(to) / from) {
    soxr_error_t failure = nullptr;
    // The pass bands of ffmpeg's own resampler, which prepared the recordings that speech models learned
    // from: 16 bits, and edges that lie even around 0.97 of the lower rate's half, or all of it on the way
    // up.
    soxr_quality_spec_t quality = soxr_quality_spec(SOXR_16_BITQ, 0);
    quality.passband_end = to < from ? 0.78 : 0.8;
    quality.stopband_begin = to < from ? 1.16 : 1.2;
    soxr = soxr_create(from, to, 1, &failure, nullptr, &quality, nullptr);
    if (failure || !soxr)
      throw error(ErrorKind::OutOfMemory, "cannot resample from {} to {} per second: {}", from, to,
                  failure ? failure : "no reason given");
  }
  ~State() { soxr_delete(soxr); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // `in` null ends the signal.
  void process(const float* in, size_t count, std::vector<float>* out) {
    for (;;) {
      const size_t room = static_cast<size_t>(static_cast<double>(count) * ratio) + 4096,
                   before = out->size();
      out->resize(before + room);
      size_t used = 0, made = 0;
      const soxr_error_t failure = soxr_process(soxr, in, count, &used, out->data() + before, room, &made);
      out->resize(before + made);
      if (failure) throw error(ErrorKind::OutOfMemory, "resampling failed: {}", failure);
      if (in) {
        in += used;
        count -= used;
        if (count == 0) return;
        if (used == 0 && made == 0) throw error(ErrorKind::OutOfMemory, "resampling does not go on");
      } else if (made == 0) {
        return;
      }
    }
  }
};

Resampler::Resampler(int from, int to) {
  if (from != to) state_ = std::make_unique<State>(from, to);
}
Resampler::~Resampler() = default;
Resampler::Resampler(Resampler&&) noexcept = default;
Resampler& Resampler::operator=(Resampler&&) noexcept = default;

void Resampler::run(std::span<const float> in, std::vector<float>* out) {
  if (!state_)
    out->insert(out->end(), in.begin(), in.end());
  else if (!in.empty())
    state_->process(in.data(), in.size(), out);
}

void Resampler::finish(std::vector<float>* out) {
  if (state_) state_->process(nullptr, 0, out);
}

}  // namespace cyb
