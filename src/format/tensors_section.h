// SPDX-License-Identifier: Apache-2.0
// The `tensors` section as text: one line a tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tensor/encoding.h"

namespace cyb {

// Lines in file order. Checks keys, types, and that each spec is valid with the size that it implies; throws
// InvalidFile, InvalidConfig or WeightFormat with the line. Under `version` 2 any addendum is refused.
std::vector<TensorSpec> parse_tensors(std::string_view text, const std::string& where, int first_line,
                                      int version);

// "NAME" = { shape = […], encoding = "…", offset = …, size = …, … } with a line end.
void print_tensor(std::string* out, const TensorSpec& spec);

}  // namespace cyb
