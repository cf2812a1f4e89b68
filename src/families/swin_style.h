// SPDX-License-Identifier: Apache-2.0
// Hierarchical transformers whose attention stays in shifted windows (Liu et al. 2021).
#pragma once

#include "families/family.h"

namespace cyb {

Family swin_style();

}  // namespace cyb
