// SPDX-License-Identifier: Apache-2.0
// Files of a command that reads many: names, patterns, and a result for each in the order of the input.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace cyb {

// Names as they are; patterns that no shell expanded (*, ?, [a-z] within a name, ** for any folders) become
// the files that they match, sorted. "-" stays. Throws Usage for a pattern that matches nothing, and Io for a
// folder; where `texts` may stand beside files, such an item stays as it is.
std::vector<std::string> expand_files(const std::vector<std::string>& given, bool texts = false);

// Whether a name fits a pattern without '/'.
bool fits_pattern(std::string_view name, std::string_view pattern);

// Prints answer(file) for each file in turn, with a progress bar over the files where there are several. Of
// several files one that fails is told on the error stream, and the others go on; at the end the command
// fails (Exit 1). The error of a single file is thrown.
void answer_files(const std::vector<std::string>& files,
                  const std::function<std::string(const std::string&)>& answer);

}  // namespace cyb
