// SPDX-License-Identifier: Apache-2.0
#include "cli/hear_recording.h"

#include <algorithm>

#include "media/sound/sound.h"

namespace cyb {

std::vector<float> hear_recording(const std::string& file, int rate, VoiceActivity* voice, ProgressBar* bar,
                                  const std::function<bool(std::span<const float>)>& each) {
  MonoReader reader(file, rate);
  std::vector<float> block(size_t{1} << 16), probabilities;
  if (voice) voice->reset();
  const double expected = std::max(reader.source_seconds(), 1.0);
  size_t samples = 0;
  while (const size_t n = reader.read(block)) {
    const auto part = std::span<const float>(block).first(n);
    samples += n;
    const bool more = each(part);
    if (voice) voice->hear(part, &probabilities);
    if (voice && bar)
      bar->update("seconds heard", samples / static_cast<size_t>(rate), static_cast<uint64_t>(expected));
    if (!more) break;
  }
  if (voice) voice->finish(&probabilities);
  if (bar) bar->clear();
  return probabilities;
}

}  // namespace cyb
