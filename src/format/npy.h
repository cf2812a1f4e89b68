// SPDX-License-Identifier: Apache-2.0
// NumPy's array files: .npy (format 1.0 to 3.0) holds one array, .npz (format/npz.h) several.
#pragma once

#include <string>
#include <string_view>

#include "tensor/tensor.h"

namespace cyb {

// Numbers, bools, and texts ('U' and 'S' arrays); little-endian, in C or Fortran order. Two-byte void
// elements, as which NumPy stores the bfloat16 of its extensions, are bf16. Throws InvalidFile for anything
// else.
Tensor read_npy(const std::string& path);
Tensor parse_npy(std::string_view bytes, const std::string& where);

// The bytes of a .npy file. NumPy has no bf16: its values are written as f32, which holds them exactly.
// Texts become an array of 'U'; throws UnsupportedOp where one is no UTF-8.
std::string npy_bytes(const Tensor& tensor, const std::string& where);
void write_npy(const std::string& path, const Tensor& tensor);

}  // namespace cyb
