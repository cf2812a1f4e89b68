// SPDX-License-Identifier: Apache-2.0
// Convolutional networks in the manner of transformers (Liu et al. 2022, Woo et al. 2023).
#pragma once

#include "families/family.h"

namespace cyb {

Family convnext_style();

}  // namespace cyb
