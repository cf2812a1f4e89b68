// SPDX-License-Identifier: Apache-2.0
// The names that a checkpoint's pickle may hold, and what "calling" each of them builds: tensors, parameters,
// dictionaries, numpy's arrays and scalars. Internal to this folder.
#pragma once

#include <string_view>

#include "base/error.h"
#include "import/pytorch/pickle_values.h"

namespace cyb {

Error pickle_error(const std::string& what);

// The node of "module name". Throws where it is not in the list.
PickleNode pickle_global(std::string_view text);
// What callable(*args) stands for.
PickleNode pickle_reduce(PickleValues& values, const PickleNode& callable, const PickleNode& args);
// __setstate__ of a node.
void pickle_build(PickleValues& values, PickleNode& node, const PickleNode& state);
// ('storage', type, key, location, size)
PickleNode pickle_persistent(PickleValues& values, const PickleNode& id);

}  // namespace cyb
