// SPDX-License-Identifier: Apache-2.0
#include "cli/file_inputs.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/terminal.h"
#include "cli/command.h"
#include "cli/progress_bar.h"

namespace cyb {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMostFiles = 1 << 20;

bool is_pattern(std::string_view text) { return text.find_first_of("*?[") != std::string_view::npos; }

// The end of the set that begins at `at` with '['; npos: it does not end, and '[' is a letter.
size_t set_end(std::string_view pattern, size_t at) {
  size_t end = at + 1;
  if (end < pattern.size() && (pattern[end] == '!' || pattern[end] == '^')) end++;
  return pattern.find(']', end + 1);
}

bool in_set(char c, std::string_view set) {  // between the brackets
  const bool other = !set.empty() && (set[0] == '!' || set[0] == '^');
  if (other) set.remove_prefix(1);
  bool found = false;
  for (size_t i = 0; i < set.size(); i++) {
    if (i + 2 < set.size() && set[i + 1] == '-') {
      found = found || (set[i] <= c && c <= set[i + 2]);
      i += 2;
    } else {
      found = found || set[i] == c;
    }
  }
  return found != other;
}

// Files below `folder` that fit parts[at…].
void collect(const fs::path& folder, const std::vector<std::string>& parts, size_t at,
             std::vector<std::string>* out) {
  std::error_code code;
  const std::string& part = parts[at];
  const bool last = at + 1 == parts.size();
  if (!is_pattern(part)) {
    const fs::path next = folder / part;
    if (last ? fs::is_regular_file(next, code) : fs::is_directory(next, code))
      last ? out->push_back(next.string()) : collect(next, parts, at + 1, out);
    return;
  }
  const bool any_depth = part == "**" && !last;
  if (any_depth) collect(folder, parts, at + 1, out);
  for (const auto& entry : fs::directory_iterator(folder.empty() ? fs::path(".") : folder, code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') && !part.starts_with('.')) continue;  // hidden ones must be meant
    if (out->size() >= kMostFiles)
      throw error(ErrorKind::Usage, "the pattern gives more than a million files");
    const bool is_folder = entry.is_directory(code), is_link = entry.is_symlink(code);
    if (any_depth) {
      if (is_folder && !is_link) collect(folder / name, parts, at, out);  // links may lead in circles
    } else if (fits_pattern(name, part)) {
      if (last && entry.is_regular_file(code)) out->push_back((folder / name).string());
      if (!last && is_folder) collect(folder / name, parts, at + 1, out);
    }
  }
}

}  // namespace

bool fits_pattern(std::string_view name, std::string_view pattern) {
  // One place to go back to: a later '*' makes earlier ones irrelevant.
  size_t n = 0, p = 0, star = std::string_view::npos, mark = 0;
  while (n < name.size()) {
    const size_t end = p < pattern.size() && pattern[p] == '[' ? set_end(pattern, p) : std::string_view::npos;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (end != std::string_view::npos
                   ? in_set(name[n], pattern.substr(p + 1, end - p - 1))
                   : p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      p = end != std::string_view::npos ? end + 1 : p + 1;
      n++;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

std::vector<std::string> expand_files(const std::vector<std::string>& given, bool texts) {
  std::vector<std::string> out;
  std::error_code code;
  for (const std::string& item : given) {
    if (item == "-" || !is_pattern(item) || fs::exists(item, code)) {
      if (!texts && fs::is_directory(item, code))
        throw error(ErrorKind::Io, "'{}' is a folder", item)
            .advise("give its files: '{}'", (fs::path(item) / "*").string());
      out.push_back(item);
      continue;
    }
    std::vector<std::string> parts, found;
    const fs::path path(item);
    for (const fs::path& part : path.relative_path()) parts.push_back(part.string());
    if (!parts.empty()) collect(path.root_path(), parts, 0, &found);
    if (found.empty() && texts) found.push_back(item);
    if (found.empty())
      throw error(ErrorKind::Usage, "no file fits '{}'", item)
          .advise("check the pattern: * ? [a-z] within names, ** for folders");
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

void answer_files(const std::vector<std::string>& files,
                  const std::function<std::string(const std::string&)>& answer) {
  const auto print = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  if (files.size() == 1) return print(answer(files[0]));
  ProgressBar bar(ProgressBar::Unit::items);
  size_t failed = 0;
  for (size_t i = 0; i < files.size(); i++) {
    bar.update(files[i], i, files.size());
    try {
      const std::string text = answer(files[i]);
      bar.clear();
      print(text);
    } catch (const Error& e) {
      bar.clear();
      print_error(
          e.message().find(files[i]) == std::string::npos ? files[i] + ": " + e.message() : e.message(),
          e.advice());
      failed++;
    }
  }
  bar.clear();
  if (failed > 0) {
    fmt::print(stderr, "{} of {} files failed\n", failed, files.size());
    throw Exit{1};
  }
}

}  // namespace cyb
