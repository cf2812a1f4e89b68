// SPDX-License-Identifier: Apache-2.0
// A recording read in blocks, for commands that look at it once.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/progress_bar.h"
#include "tasks/voice_activity.h"

namespace cyb {

// `each` gets the blocks, at `rate`, and says whether to go on. `voice`, where not null, hears them from its
// beginning: the result is what it thinks of each of its windows, and `bar`, where not null, shows the
// seconds.
std::vector<float> hear_recording(const std::string& file, int rate, VoiceActivity* voice, ProgressBar* bar,
                                  const std::function<bool(std::span<const float>)>& each);

}  // namespace cyb
