// SPDX-License-Identifier: Apache-2.0
// Whisper (Radford et al. 2022): an encoder of log-mel frames, a text decoder that attends to it.
#pragma once

#include "families/family.h"

namespace cyb {

Family whisper_style();

}  // namespace cyb
