// SPDX-License-Identifier: Apache-2.0
// Decoders with rotary attention and gated feed-forward layers (Touvron et al. 2023 and what followed).
#pragma once

#include "families/family.h"

namespace cyb {

Family llama_style();

}  // namespace cyb
