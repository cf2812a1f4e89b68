// SPDX-License-Identifier: Apache-2.0
// Encoder-decoders for texts: T5 and its relatives (Raffel et al. 2019), BART (Lewis et al. 2019), mBART,
// Marian, M2M-100 and NLLB, Pegasus.
#pragma once

#include "families/family.h"

namespace cyb {

Family t5_style();

}  // namespace cyb
