// SPDX-License-Identifier: Apache-2.0
// The stack machine of Python's pickles, protocols 0 to 5, that builds data and nothing else.
#pragma once

#include <cstdint>
#include <span>

#include "import/pytorch/pickle_values.h"

namespace cyb {

// Runs the pickle at the start of `bytes`, which outlive the values, and gives its length. A name that is not
// in the list (pickle_globals.h), and anything that would call something, is refused with its name. Throws
// InvalidFile.
PickleValues unpickle(std::span<const uint8_t> bytes, uint64_t* length = nullptr);

}  // namespace cyb
