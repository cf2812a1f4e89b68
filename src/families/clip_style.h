// SPDX-License-Identifier: Apache-2.0
// Pictures and texts in one space (Radford et al. 2021, Zhai et al. 2023): two towers and how to compare
// them.
#pragma once

#include "families/family.h"

namespace cyb {

Family clip_style();

}  // namespace cyb
