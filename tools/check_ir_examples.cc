// SPDX-License-Identifier: Apache-2.0
// Parses every program in a Markdown file: the fenced blocks whose first line is `ir 1`.
//   check_ir_examples docs/ir.md
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/file.h"
#include "ir/text.h"

namespace {

int check(const std::string& path) {
  const std::string text = cyb::read_file(path);
  const std::string_view begin = "```\nir 1\n", end = "\n```";
  int programs = 0;
  for (size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const size_t from = at + 4, to = text.find(end, from);
    const int line =
        1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<long>(from), '\n'));
    const std::string where = fmt::format("{}, program of line {}", path, line);
    const std::string program = text.substr(from, to + 1 - from);
    const std::string printed = print(cyb::ir::parse(program, where));
    if (print(cyb::ir::parse(printed, where + ", printed")) != printed) {
      fmt::print(stderr, "{}: does not print as it parses\n", where);
      return 1;
    }
    programs++;
  }
  fmt::print("{}: {} programs\n", path, programs);
  return programs > 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    for (int i = 1; i < argc; i++)
      if (check(argv[i]) != 0) return 1;
    return argc > 1 ? 0 : 2;
  } catch (const cyb::Error& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}
