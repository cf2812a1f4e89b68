// SPDX-License-Identifier: Apache-2.0
// Repeated lines of the text form as bounded loops, and back.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace cyb::ir {

// Runs of lines that differ only by numbers in names, all advancing by the same step, become
//   for i in FROM..TO by STEP {      (TO is not reached; `by 1` is left out)
//     … {i} … {i+1} …
//   }
std::vector<std::string> fold_lines(const std::vector<std::string>& lines);

struct SourceLine {
  std::string text;
  int number;  // in the source, from 1
};
// Writes loops out. Throws InvalidFile (nesting, size, syntax) naming `where` and the line.
std::vector<SourceLine> unfold_lines(std::string_view text, const std::string& where);

}  // namespace cyb::ir
