// SPDX-License-Identifier: Apache-2.0
// NumPy's array files (format 1.0 to 3.0): one array of numbers or bools, C order.
#pragma once

#include <string>

#include "tensor/tensor.h"

namespace cyb {

// Throws InvalidFile for anything but little-endian numbers and bools in C order.
Tensor read_npy(const std::string& path);
Tensor parse_npy(std::string_view bytes, const std::string& where);
// Throws UnsupportedOp for types that NumPy lacks (bf16, strings).
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace cyb
