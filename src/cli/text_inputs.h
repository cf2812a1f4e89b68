// SPDX-License-Identifier: Apache-2.0
// Texts of a command that reads many: as arguments, one a line of a file, or one a line of standard input.
#pragma once

#include <string>
#include <vector>

namespace cyb {

// Throws Usage where there is no text, or one that is not valid UTF-8.
std::vector<std::string> read_texts(const std::vector<std::string>& given, const std::string& file);

}  // namespace cyb
