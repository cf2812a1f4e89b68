// SPDX-License-Identifier: Apache-2.0
// NumPy's archives (.npz): a zip of NAME.npy files, stored or deflated.
#pragma once

#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tensor/tensor.h"

namespace cyb {

// All arrays of a file by their names. Throws InvalidFile, naming the member, and Io.
std::map<std::string, Tensor> read_npz(const std::string& path);

// Appears complete or not at all. Names are kept as they are: archive["/enc/out"].
void write_npz(const std::string& path, std::span<const std::pair<std::string, const Tensor*>> arrays);

}  // namespace cyb
