// SPDX-License-Identifier: Apache-2.0
// Vision transformers alone: one tower, and a head for classes.
#pragma once

#include "families/family.h"

namespace cyb {

Family vit_style();

}  // namespace cyb
