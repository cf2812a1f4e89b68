// SPDX-License-Identifier: Apache-2.0
// The mix of several channels to one.
#include <cmath>

#include "base/error.h"
#include "media/sound/decoder.h"

namespace cyb {

std::vector<float> mix_weights(const std::vector<Speaker>& speakers) {
  std::vector<float> weights;
  float sum = 0;
  for (const Speaker speaker : speakers) {
    switch (speaker) {
      case Speaker::Centre:
        weights.push_back(1);
        break;
      case Speaker::Front:
      case Speaker::BackCentre:
        weights.push_back(std::sqrt(0.5f));
        break;
      case Speaker::Surround:
        weights.push_back(0.5f);
        break;
      case Speaker::Bass:
        weights.push_back(0);
        break;
      case Speaker::Other:  // places without a rule: all channels alike
        return {};
    }
    sum += weights.back();
  }
  if (sum == 0) return {};
  for (float& weight : weights) weight /= sum;
  return weights;
}

std::vector<Speaker> usual_speakers(int channels) {
  using enum Speaker;
  switch (channels) {
    case 3:
      return {Front, Front, Bass};
    case 4:
      return {Front, Front, Centre, BackCentre};
    case 5:
      return {Front, Front, Centre, Surround, Surround};
    case 6:
      return {Front, Front, Centre, Bass, Surround, Surround};
    case 7:
      return {Front, Front, Centre, Bass, BackCentre, Surround, Surround};
    case 8:
      return {Front, Front, Centre, Bass, Surround, Surround, Surround, Surround};
    default:
      return {};
  }
}

void check_sound_shape(const std::string& name, int64_t rate, int64_t channels) {
  constexpr int64_t kLeastRate = 1000, kMostRate = 1'000'000, kMostChannels = 64;
  if (rate < kLeastRate || rate > kMostRate)
    throw error(ErrorKind::InvalidFile, "{}: found {} samples per second, expected {} to {}", name, rate,
                kLeastRate, kMostRate)
        .advise("the recording's header is damaged; convert it again");
  if (channels < 1 || channels > kMostChannels)
    throw error(ErrorKind::InvalidFile, "{}: found {} channels, expected 1 to {}", name, channels,
                kMostChannels)
        .advise("the recording's header is damaged, or give its channels apart");
}

}  // namespace cyb
