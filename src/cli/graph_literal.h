// SPDX-License-Identifier: Apache-2.0
// Arrays written on the command line: 0.5, [1, 2, 3], [[true], [false]], "text".
#pragma once

#include <optional>
#include <string>

#include "tensor/tensor.h"

namespace cyb {

// Nothing where the text is no literal (a file's name); throws Usage for one that `type` cannot hold, or
// whose lists differ in length.
std::optional<Tensor> parse_literal(const std::string& text, DType type);

// False where the integer or bool type does not hold the value.
bool put_integer(Tensor* t, size_t i, int64_t value);

}  // namespace cyb
