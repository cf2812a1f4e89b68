// SPDX-License-Identifier: Apache-2.0
// The text part of a `.model` file: frontmatter, then sections that begin with a line `~~~name`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cyb {

struct Section {
  std::string name;
  std::string_view raw;  // as it stands in the file, escapes included
  bool escaped = false;  // whether some are there
};

struct SectionScan {
  std::string_view frontmatter;
  std::vector<Section> sections;  // without `weights`
  uint64_t weights_at = 0;        // where the binary starts
};

// Cuts a file. Throws InvalidFile with the line where the text does not follow the format; `path` names the
// file.
SectionScan scan_sections(std::string_view file, const std::string& path);

// Whether this is a section that the format knows, and its place in the order.
int section_rank(std::string_view name);  // −1 for an unknown name

// `md`, `toml`, `ir`, `jinja`, `tensors`: what the frontmatter says about a section.
std::string_view section_format(std::string_view name);

// A content line that begins with ~~~ has one more ~ in the file.
std::string escape_section(std::string_view text);
std::string unescape_section(std::string_view raw);

// The number of the line where the byte `at` stands. Lines are counted when an error needs their number: a vocabulary
// has hundreds of thousands.
int line_of(std::string_view file, size_t at);

}  // namespace cyb
