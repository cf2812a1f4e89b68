// SPDX-License-Identifier: Apache-2.0
#include "import/json_file.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"

namespace cyb {

using nlohmann::ordered_json;

ordered_json read_json_file(const std::string& path) {
  constexpr int kMaxDepth = 64;
  const std::string text = read_file(path, kMaxJsonFile);
  // A file of brackets only would otherwise grow a tree a hundred times its size.
  const auto limit_depth = [&](int depth, ordered_json::parse_event_t, ordered_json&) {
    if (depth > kMaxDepth) throw error(ErrorKind::InvalidFile, "{}: nested too deep", path);
    return true;
  };
  try {
    return ordered_json::parse(text, limit_depth);
  } catch (const ordered_json::exception& e) {
    throw error(ErrorKind::InvalidFile, "{}: no valid JSON ({})", path, e.what())
        .advise("the file is damaged, or a Git-LFS pointer or a web page under its name; fetch it again");
  }
}

ordered_json read_json_object(const std::string& path) {
  ordered_json value = read_json_file(path);
  if (value.is_object()) return value;
  throw error(ErrorKind::InvalidFile, "{}: JSON, but not an object", path);
}

}  // namespace cyb
