// SPDX-License-Identifier: Apache-2.0
#include "format/sections.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace cyb {
namespace {

constexpr uint64_t kMaxText = 1ull << 30;
constexpr int kMaxSections = 256;

struct Known {
  std::string_view name;
  std::string_view format;
  bool has_parts;
};
constexpr Known kKnown[] = {
    {"card", "md", false},          {"config", "toml", false}, {"program", "ir", false},
    {"tensors", "toml", false},     {"vocab", "toml", true},   {"chat", "jinja", true},
    {"preprocessor", "toml", true}, {"eval", "toml", false},   {"weights", "tensors", false}};

bool is_part_name(std::string_view text) {
  if (text.empty() || text.size() > 64) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

const Known* find_known(std::string_view name) {
  for (const Known& known : kKnown) {
    if (name == known.name) return &known;
    if (known.has_parts && name.size() > known.name.size() && name.starts_with(known.name) &&
        name[known.name.size()] == '.' && is_part_name(name.substr(known.name.size() + 1)))
      return &known;
  }
  return nullptr;
}

struct Marker {
  size_t at = std::string_view::npos;
  bool escaped = false;  // lines with more tildes stand before it
};

// The next line that begins with exactly three tildes, at or after `pos`, which is the start of a line. Looks for
// tildes, which are rare, not for line ends.
Marker find_marker(std::string_view text, size_t pos) {
  const size_t begin = pos;
  Marker found;
  while ((pos = text.find('~', pos)) != std::string_view::npos) {
    size_t end = pos + 1;
    while (end < text.size() && text[end] == '~') end++;
    if (end - pos >= 3 && (pos == begin || text[pos - 1] == '\n')) {
      if (end - pos == 3) {
        found.at = pos;
        break;
      }
      found.escaped = true;
    }
    pos = end;
  }
  return found;
}

}  // namespace

int section_rank(std::string_view name) {
  const Known* known = find_known(name);
  if (!known) return -1;
  // A part follows the section that it belongs to.
  return static_cast<int>(known - kKnown) * 2 + (name.size() > known->name.size() ? 1 : 0);
}

std::string_view section_format(std::string_view name) {
  const Known* known = find_known(name);
  return known ? known->format : std::string_view();
}

SectionScan scan_sections(std::string_view file, const std::string& path) {
  SectionScan out;
  const std::string_view text = file.substr(0, kMaxText);
  auto fail = [&](size_t at, std::string_view what) {
    return error(ErrorKind::InvalidFile, "{}, line {}: {}", path, line_of(text, at), what)
        .advise("the file is truncated or damaged; import or fetch it again");
  };
  size_t at = find_marker(text, 0).at;
  if (at == std::string_view::npos) throw fail(0, "no section begins in this file");
  out.frontmatter = text.substr(0, at);
  for (;;) {
    const size_t end = text.find('\n', at);
    // A damaged file may have a very long line here.
    if (end == std::string_view::npos || end - at > 128) throw fail(at, "the section's name does not end");
    const std::string_view name = text.substr(at + 3, end - at - 3);
    if (name == "weights") {
      out.weights_at = end + 1;
      break;
    }
    const int rank = section_rank(name);
    if (rank < 0) throw fail(at, fmt::format("unknown section '{}'", std::string(name.substr(0, 64))));
    if (out.sections.size() >= kMaxSections) throw fail(at, "too many sections");
    for (const Section& before : out.sections) {
      if (before.name == name) throw fail(at, fmt::format("the section '{}' stands twice", name));
      if (section_rank(before.name) > rank)
        throw fail(at, fmt::format("the section '{}' must stand before '{}'", name, before.name));
    }
    const size_t begin = end + 1;
    const Marker next = find_marker(text, begin);
    if (next.at == std::string_view::npos)
      throw fail(at, fmt::format("no section follows '{}', and '~~~weights' is missing", name));
    std::string_view raw = text.substr(begin, next.at - begin);
    if (!raw.empty()) raw.remove_suffix(1);  // the line end that the writer adds
    out.sections.push_back({std::string(name), raw, next.escaped});
    at = next.at;
  }
  if (!out.sections.empty()) {  // blank lines before the weights are padding
    std::string_view& raw = out.sections.back().raw;
    while (!raw.empty() && raw.back() == '\n') raw.remove_suffix(1);
  }
  for (const char* needed : {"card", "config", "program", "tensors", "vocab", "eval"})
    if (std::none_of(out.sections.begin(), out.sections.end(),
                     [&](const Section& s) { return s.name == needed; }))
      throw fail(at, fmt::format("the section '{}' is missing", needed));
  return out;
}

int line_of(std::string_view file, size_t at) {
  const std::string_view before = file.substr(0, at);
  return 1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'));
}

std::string escape_section(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t pos = 0;
  for (;;) {
    if (text.substr(pos, 3) == "~~~") out.push_back('~');
    const size_t next = text.find("\n~~~", pos);
    if (next == std::string_view::npos) break;
    out.append(text.substr(pos, next + 1 - pos));
    pos = next + 1;
  }
  out.append(text.substr(pos));
  return out;
}

std::string unescape_section(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  size_t pos = 0;
  if (raw.substr(0, 4) == "~~~~") pos = 1;
  for (;;) {
    const size_t next = raw.find("\n~~~~", pos);
    if (next == std::string_view::npos) break;
    out.append(raw.substr(pos, next + 1 - pos));
    pos = next + 2;
  }
  out.append(raw.substr(pos));
  return out;
}

}  // namespace cyb
