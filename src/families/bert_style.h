// SPDX-License-Identifier: Apache-2.0
// Text encoders that see both directions (Devlin et al. 2018 and what followed), with their heads.
#pragma once

#include "families/family.h"

namespace cyb {

Family bert_style();

}  // namespace cyb
